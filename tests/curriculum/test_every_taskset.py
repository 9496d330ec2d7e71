"""What is true of every taskset in the registry, whatever it asks.

Answers that are decided from their text are checked here; those that a sandbox or a Lean decides have tests of their
own.
"""

from __future__ import annotations

import json
import re
from functools import cache

import pytest

from curriculum.certification.certificate import made_by, shipped
from curriculum.contract.taskset import DrawsTopic, TaskDraft
from curriculum.registry import BUILT_IN, CALCULATORS, TASKSETS, make_draft, stable_random
from verifiers.contract.verdict import Outcome
from verifiers.registry import decide, is_decided

EACH = 4
"""Seeds of a level whose answers are checked; `benchmarks/tasksets.py` takes 200."""
QUICK, MANY = 15, 60
"""Seeds of a level whose drafts are compared, in the suite and at night."""


@pytest.fixture(scope="module", params=TASKSETS)
def name(request: pytest.FixtureRequest) -> str:
    """All tests of one taskset come after each other, in one process, and share what was made for them."""
    return str(request.param)


@pytest.fixture(params=[QUICK, pytest.param(MANY, marks=pytest.mark.slow)])
def many(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@cache
def drafts(name: str, count: int) -> list[list[TaskDraft]]:
    """By level."""
    return [[make_draft(name, level, seed) for seed in range(count)] for level in range(TASKSETS[name].level_count)]


def decided(name: str) -> list[TaskDraft]:
    """A few of each level, as far as they are decided from their text."""
    return [draft for level in drafts(name, QUICK) for draft in level[:EACH] if is_decided(draft.spec)]


def passes(draft: TaskDraft, answer: str) -> bool:
    return decide(draft.spec, answer).outcome is Outcome.PASS


def test_a_taskset_makes_what_was_certified_unless_its_version_says_otherwise(name: str) -> None:
    """Whoever changes what a taskset makes raises its version, and certifies it anew:
    `python benchmarks/tasksets.py --only NAME --record`."""
    assert shipped().get(name) == made_by(BUILT_IN, name)


def test_the_reference_answer_of_a_task_passes_its_own_check(name: str) -> None:
    assert [draft.key for draft in decided(name) if not passes(draft, draft.answer)] == []


def test_digits_are_demanded_only_where_the_question_asks_for_them(name: str) -> None:
    strict = [draft for draft in decided(name) if getattr(draft.spec, "notation", "any") == "digits"]
    assert [draft.key for draft in strict if "digits" not in str(draft.messages)] == []


def test_what_is_said_without_any_work_passes_for_no_task(name: str) -> None:
    """The calculators' guesses pass for some tasks; how many their own tests say."""
    idle = ("", *(() if name in CALCULATORS else TASKSETS[name].null_answers))
    assert [(draft.key, nothing) for draft in decided(name) for nothing in idle if passes(draft, nothing)] == []


def test_a_check_that_nothing_meets_is_not_met_by_the_reference(name: str) -> None:
    taskset = TASKSETS[name]
    for draft in decided(name)[::5]:
        assert decide(taskset.unsolvable(draft, 7), draft.answer).outcome is not Outcome.PASS


def test_a_key_belongs_to_one_question_and_a_question_to_one_key(name: str, many: int) -> None:
    every = [draft for level in drafts(name, many) for draft in level]
    by_key: dict[str, str] = {}
    by_text: dict[str, str] = {}
    for draft in every:
        world = json.dumps(dict(draft.world), sort_keys=True)
        text = "\n".join([*(message.text for message in draft.messages), *draft.files.values(), world])
        if is_decided(draft.spec):
            assert by_key.setdefault(draft.key, draft.spec.model_dump_json()) == draft.spec.model_dump_json()
        assert by_text.setdefault(text, draft.key) == draft.key
    assert len({draft.key for draft in every}) > 0.6 * len(every)


def test_every_topic_is_asked_and_what_is_asked_grows_with_the_level(name: str, many: int) -> None:
    taskset, levels = TASKSETS[name], drafts(name, many)
    asked = {draft.topic for level in levels for draft in level}
    if isinstance(taskset, DrawsTopic):  # of many topics, few drafts may lack one
        asked |= {taskset.topic_of(stable_random("problem", name, 0, seed)) for seed in range(20 * len(taskset.topics))}
    assert asked == set(taskset.topics)
    sizes = [sum(map(size, level)) / len(level) for level in levels]
    assert sizes[-1] > (1 if name in CALCULATORS else 1.2) * sizes[0], sizes
    if name not in CALCULATORS:
        assert len(levels) >= 5


def size(draft: TaskDraft) -> int:
    """How many digits and signs the question has, and the length of the answer; where it is about a world, how many
    words it has: no more than a measure of its size."""
    if draft.environment in ("research", "orchestration", "published_servers"):
        return len(draft.messages[-1].text.split())
    asked = "".join([draft.messages[-1].text, *draft.files.values(), json.dumps(dict(draft.world))])
    return len(re.findall(r"[0-9+*/^<>=-]", asked)) + len(draft.answer)
