"""What is true of every taskset in the registry, whatever it asks.

Answers that are decided from their text are checked here; those that a sandbox or a Lean decides have tests of their
own.
"""

from __future__ import annotations

import hashlib
import json
import re
from functools import cache

import pytest

from curriculum.contract.taskset import TaskDraft
from curriculum.registry import CALCULATORS, TASKSETS, make_draft, task_of
from verifiers.contract.verdict import Outcome
from verifiers.registry import decide, is_decided

EACH = 4
"""Seeds of a level whose answers are checked; `benchmarks/tasksets.py` takes 200."""
MANY = 60
RECORDED = {
    "arithmetic": "1:5ce2dbad9d5c",
    "arrangements": "1:87b3644df4de",
    "assignments": "1:9af6949203a7",
    "calendars": "1:2d1808cd1e6a",
    "circles": "1:edc6a304268d",
    "colourings": "1:5bf46d5e20ae",
    "complex_numbers": "1:a97a2533e3a2",
    "constraint_models": "1:0e3d679063bc",
    "conversions": "1:8b2efedfed57",
    "coordinate_geometry": "1:58a65701861e",
    "counting": "1:e463cb8e0fb7",
    "derivatives": "1:093a5af9a86d",
    "digit_problems": "1:7640960517e1",
    "digits": "1:235740b625ed",
    "diophantine_equations": "1:7689b4b5b37a",
    "disproofs": "1:6b2011cfa145",
    "divisibility": "1:94a39364ed8b",
    "divisors": "1:38ee2b4052f2",
    "documents": "1:38f012aab14f",
    "expected_values": "1:eb5585f21dc4",
    "exponents_and_logarithms": "1:aa81b4d8219c",
    "fraction_arithmetic": "1:acb36a44b5a3",
    "functions": "1:bc5dbda16753",
    "grids": "1:1dce07207c55",
    "hidden_rules": "1:25f2b0363f99",
    "inequalities": "1:54315ae37ccd",
    "integrals": "1:b27116f23303",
    "json_documents": "1:3bbb22b9e92d",
    "knights": "1:313703cc6e32",
    "limits": "1:68281636dae8",
    "linear": "1:688a27034fbc",
    "linear_systems": "1:9199de69bb93",
    "long_form": "1:ed4abdc7f168",
    "mail_search": "1:ea057c11777c",
    "matrix_algebra": "1:07aac1aaa293",
    "modular_arithmetic": "1:c3e3921156dd",
    "number_bases": "1:b61af4a6ba40",
    "optimization": "1:d6e36ca3b986",
    "polynomial_roots": "1:ae70e88c3e46",
    "polynomials": "1:7e1401c0df01",
    "powers": "1:2473d0d36f67",
    "primes": "1:d2121ed1f704",
    "probability": "1:ceb6d5485c32",
    "program_completion": "1:a3c5c4a157f7",
    "program_repair": "1:8b8a0072c66f",
    "program_speed": "1:2aed54f7b29e",
    "program_tracing": "1:ce9cf9b90b7d",
    "program_translation": "1:6453604c01e9",
    "programs": "2:f0063cc62cfd",
    "propositions": "1:5b83ae3969d3",
    "rational_expressions": "1:86e2166afb75",
    "recurrences": "1:e693d9958c53",
    "regular_expressions": "1:770b3a44fa18",
    "orchestration": "1:2178bac60719",
    "research": "1:129002d60ab5",
    "research_reports": "1:fd22bef1cce6",
    "sequences": "1:27aaf83e650c",
    "series": "1:e4b03c27ad07",
    "shortest_ways": "1:527217644192",
    "tables": "1:760c2931fc51",
    "terminal_repairs": "1:6cfd4498652e",
    "text_changes": "1:0eb8ffdc1f77",
    "theorems": "2:585edc3b9c0d",
    "transformations": "1:140e657dcd56",
    "triangles": "1:da63cd5fdc8e",
    "writing": "1:dab04c30457c",
}
"""By taskset: its version, and a digest of tasks of all its levels. Whoever changes what a taskset makes raises its
version, and only then records another digest."""


@cache
def drafts(name: str) -> list[list[TaskDraft]]:
    """By level."""
    return [[make_draft(name, level, seed) for seed in range(MANY)] for level in range(TASKSETS[name].level_count)]


def decided(name: str) -> list[TaskDraft]:
    """A few of each level, as far as they are decided from their text."""
    return [draft for level in drafts(name) for draft in level[:EACH] if is_decided(draft.spec)]


def passes(draft: TaskDraft, answer: str) -> bool:
    return decide(draft.spec, answer).outcome is Outcome.PASS


@pytest.mark.parametrize("name", TASKSETS)
def test_a_taskset_makes_what_it_made_before_unless_its_version_says_otherwise(name: str) -> None:
    made = [
        task_of(draft, name, level, seed).model_dump(mode="json", exclude=None if draft.world else {"world"})
        for level, among in enumerate(drafts(name))
        for seed, draft in enumerate(among[:EACH])
    ]
    digest = hashlib.sha256(json.dumps(made, sort_keys=True).encode()).hexdigest()[:12]
    assert RECORDED.get(name) == f"{TASKSETS[name].version}:{digest}"


@pytest.mark.parametrize("name", TASKSETS)
def test_the_reference_answer_of_a_task_passes_its_own_check(name: str) -> None:
    assert [draft.key for draft in decided(name) if not passes(draft, draft.answer)] == []


@pytest.mark.parametrize("name", [name for name in TASKSETS if name not in CALCULATORS])
def test_what_is_said_without_any_work_passes_for_no_task(name: str) -> None:
    """The calculators' guesses pass for some tasks; how many their own tests say."""
    idle = ("", *TASKSETS[name].null_answers)
    assert [(draft.key, nothing) for draft in decided(name) for nothing in idle if passes(draft, nothing)] == []


@pytest.mark.parametrize("name", TASKSETS)
def test_a_check_that_nothing_meets_is_not_met_by_the_reference(name: str) -> None:
    taskset = TASKSETS[name]
    for draft in decided(name)[::5]:
        assert decide(taskset.unsolvable(draft, 7), draft.answer).outcome is not Outcome.PASS


@pytest.mark.parametrize("name", TASKSETS)
def test_a_key_belongs_to_one_question_and_a_question_to_one_key(name: str) -> None:
    every = [draft for level in drafts(name) for draft in level]
    by_key: dict[str, str] = {}
    by_text: dict[str, str] = {}
    for draft in every:
        world = json.dumps(dict(draft.world), sort_keys=True)
        text = "\n".join([*(message.text for message in draft.messages), *draft.files.values(), world])
        if is_decided(draft.spec):
            assert by_key.setdefault(draft.key, draft.spec.model_dump_json()) == draft.spec.model_dump_json()
        assert by_text.setdefault(text, draft.key) == draft.key
    assert len({draft.key for draft in every}) > 0.6 * len(every)


@pytest.mark.parametrize("name", TASKSETS)
def test_every_topic_is_asked_and_what_is_asked_grows_with_the_level(name: str) -> None:
    taskset, levels = TASKSETS[name], drafts(name)
    assert {draft.topic for level in levels for draft in level} == set(taskset.topics)
    sizes = [sum(map(size, level)) / len(level) for level in levels]
    assert sizes[-1] > (1 if name in CALCULATORS else 1.2) * sizes[0], sizes
    if name not in CALCULATORS:
        assert len(levels) >= 5


def size(draft: TaskDraft) -> int:
    """How many digits and signs the question has, and the length of the answer; where it is about a world, how many
    words it has: no more than a measure of its size."""
    if draft.environment in ("research", "orchestration"):
        return len(draft.messages[-1].text.split())
    asked = "".join([draft.messages[-1].text, *draft.files.values(), json.dumps(dict(draft.world))])
    return len(re.findall(r"[0-9+*/^<>=-]", asked)) + len(draft.answer)
