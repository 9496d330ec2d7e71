"""Programs and proofs: what their checks accept and reject, and what a draft always is."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import combinations
from random import Random
from typing import Any

import pytest
from lean_stand_in import lean_toolchain

from curriculum.contract.errors import CurriculumError, LevelError
from curriculum.contract.task import Split
from curriculum.contract.taskset import TaskDraft
from curriculum.demonstrations import demonstrable, demonstration
from curriculum.environments.orchestration.plans import executed
from curriculum.registry import CALCULATORS, TASKSETS, make_draft, make_task
from curriculum.sealed import TaskStream, sealed_set
from curriculum.seeds import split_of_question
from curriculum.tasksets.programs.chains import HIDDEN, SHOWN, TOPICS
from curriculum.tasksets.programs.list_functions import PROGRAMS
from curriculum.tasksets.programs.tested_blocks import evaluated, live_block
from curriculum.tasksets.theorems import THEOREMS
from verifiers.checker import Checker
from verifiers.contract.verdict import Outcome
from verifiers.programs.spec import ProgramSpec

OTHERS = ("programs", "theorems")
CONDUCTED = (
    *OTHERS, "program_repair", "program_completion", "program_translation", "regular_expressions", "disproofs",
)  # fmt: skip
"""Those whose answers run in sandboxes."""
LEVELS = range(5)


def drafts(name: str) -> list[TaskDraft]:
    """One of each topic, and of each level."""
    topics = TASKSETS[name].topics
    return [
        next(
            draft
            for seed in range(1_000)
            if (draft := make_draft(name, at % 5, seed)).topic == topics[at % len(topics)]
        )
        for at in range(max(len(topics), len(LEVELS)))
    ]


@pytest.fixture(scope="module")
def checker() -> Iterator[Checker]:
    with lean_toolchain(), Checker() as made:
        yield made


@pytest.mark.parametrize("step", [3, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", CONDUCTED)
def test_the_reference_answer_passes_and_what_no_work_gives_does_not(name: str, step: int, checker: Checker) -> None:
    taskset, made = TASKSETS[name], drafts(name)[::step]
    honest: list[tuple[Any, str]] = [(draft.spec, draft.answer) for draft in made]
    first = made[:2]
    idle = [(draft.spec, nothing) for draft, nothing in zip(first, taskset.null_answers, strict=False)]
    contradicted = [(taskset.unsolvable(draft, 7), draft.answer) for draft in first]
    outcomes = [verdict.outcome for verdict in checker.check_many([*honest, *idle, *contradicted])]
    assert outcomes == [Outcome.PASS] * len(honest) + [Outcome.FAIL] * (len(idle) + len(contradicted))


@pytest.mark.parametrize("name", OTHERS)
def test_each_topic_turns_up_at_each_level_and_hardly_a_question_comes_twice(name: str) -> None:
    for level in LEVELS:
        made = [make_draft(name, level, seed) for seed in range(90)]
        assert {draft.topic for draft in made} == set(TASKSETS[name].topics)
        assert len({draft.key for draft in made}) > 60
        assert len({draft.messages for draft in made}) > 60


@pytest.mark.parametrize("taskset", [PROGRAMS, THEOREMS])
def test_levels_grow_and_one_that_is_not_there_is_refused(taskset: Any) -> None:
    lengths = [sum(len(taskset.draft(level, Random(seed)).answer) for seed in range(60)) for level in LEVELS]
    assert lengths == sorted(lengths)
    assert lengths[-1] > 1.2 * lengths[0]
    with pytest.raises(LevelError, match=taskset.name):
        taskset.draft(5, Random(0))


def run(source: str, argument: str) -> str:
    names: dict[str, Any] = {}
    exec(compile(source, "reference", "exec"), names)
    return repr(eval(f"solve({argument})", names))


def test_the_tests_of_a_program_are_what_its_reference_does_and_most_are_hidden() -> None:
    for seed in range(60):
        draft = make_draft("programs", seed % 5, seed)
        assert isinstance(draft.spec, ProgramSpec)
        for example in draft.spec.examples:
            assert run(draft.answer, example.arguments) == example.expected
            assert example.visible == (f"solve({example.arguments}) ==" in draft.messages[0].text)
        assert sum(not example.visible for example in draft.spec.examples) >= HIDDEN
        assert sum(example.visible for example in draft.spec.examples) == SHOWN


def test_hidden_tests_fail_a_program_that_leaves_a_step_out() -> None:
    for seed in range(60):
        draft = make_draft("programs", seed % 5, seed)
        assert isinstance(draft.spec, ProgramSpec)
        lines = draft.answer.splitlines(keepends=True)
        hidden = [example for example in draft.spec.examples if not example.visible]
        for left_out in range(1, len(lines) - 1):
            shorter = "".join(lines[:left_out] + lines[left_out + 1 :])
            assert any(_differs(shorter, example.arguments, example.expected) for example in hidden), draft.key


def _differs(source: str, argument: str, expected: str) -> bool:
    try:
        return run(source, argument) != expected
    except (TypeError, ValueError):
        return True


def test_what_a_task_says_never_holds_its_reference_or_a_hidden_test() -> None:
    for name in OTHERS:
        for seed in range(60):
            task, draft = make_task(name, seed % 5, 4 * seed, Split.TRAIN), make_draft(name, seed % 5, 4 * seed)
            assert draft.answer.rstrip().removesuffix("return x").strip() not in task.question
    for seed in range(60):
        draft = make_draft("programs", seed % 5, seed)
        assert isinstance(draft.spec, ProgramSpec)
        hidden = [example for example in draft.spec.examples if not example.visible and len(example.arguments) > 12]
        assert not any(example.arguments in draft.messages[0].text for example in hidden)


def test_sealed_questions_of_every_taskset_are_never_asked_in_training() -> None:
    sealed = sealed_set(60, 0, tasksets=OTHERS)
    assert Counter(task.taskset for task in sealed.tasks) == {"programs": 21, "theorems": 39}
    stream = TaskStream(Split.TRAIN, 0, sealed.questions, tasksets=OTHERS)
    asked = {task.key for step in range(6) for task in stream.tasks(step, 12)}
    assert not asked & sealed.questions


def test_only_tasksets_with_demonstrations_have_a_part_in_the_warm_start() -> None:
    assert demonstrable([*OTHERS, "digits"]) == ["digits"]
    shown = demonstration(Random(0), right_choice=1.0, fail_first=0.0, tasksets=[*OTHERS, "digits"])
    assert shown.task.taskset == "digits"
    with pytest.raises(CurriculumError, match="programs, theorems") as refused:
        demonstrable(OTHERS)
    assert "model.path" in refused.value.hint
    assert demonstrable(CALCULATORS) == list(CALCULATORS)


def test_without_a_lean_theorems_cannot_be_checked_and_say_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEAN_TOOLCHAIN", "/nothing")
    assert "LEAN_TOOLCHAIN" in THEOREMS.missing()
    assert PROGRAMS.missing() == ""
    with lean_toolchain():
        assert THEOREMS.missing() == ""


def test_an_edition_of_the_research_corpus_serves_one_split() -> None:
    """So facts remembered from training answer no question that a model is judged by."""
    editions: dict[Split, set[int]] = defaultdict(set)
    for name in ("research", "research_reports"):
        for seed in range(40):
            draft = make_draft(name, 0, seed)
            editions[split_of_question(draft.key)].add(draft.world["edition"])
    assert set(editions) == {Split.TRAIN, Split.VALIDATION, Split.SEALED}
    assert not any(one & other for one, other in combinations(editions.values(), 2))


def test_what_the_servers_of_an_orchestration_know_is_not_computed_from_its_question() -> None:
    for seed in range(40):
        draft = make_draft("orchestration", seed % 5, seed)
        assert str(draft.world["seed"]) not in draft.messages[0].text
        shown = [int(number) for number in re.findall(r"\d+", draft.messages[0].text)]
        guesses = {executed(draft.world["question"], one, draft.world["day"]).answer for one in shown}
        assert int(draft.answer) not in guesses


def test_hidden_tests_fail_programs_with_one_change_that_differ_anywhere() -> None:
    passing = differing = 0
    for seed in range(40):
        draft = make_draft("programs", seed % 5, seed)
        assert isinstance(draft.spec, ProgramSpec)
        rng = Random(seed)
        others = [repr(TOPICS[draft.topic].draw(rng)) for _ in range(60)]
        wanted = {one: run(draft.answer, one) for one in others}
        for number in re.finditer(r"(?<![\w.])\d+", draft.answer):
            changed = f"{draft.answer[: number.start()]}{int(number[0]) + 1}{draft.answer[number.end() :]}"
            if all(run(changed, one) == result for one, result in wanted.items()):
                continue
            differing += 1
            passing += all(run(changed, each.arguments) == each.expected for each in draft.spec.examples)
    assert differing > 40
    assert passing <= differing // 50


def test_no_statement_of_a_program_in_another_notation_is_idle() -> None:
    for seed in range(30):
        block = live_block(3 + seed % 4, 1 + seed % 2, Random(seed))
        for at in range(len(block)):
            shorter = (*block[:at], *block[at + 1 :])
            calls = [(a, b) for a in range(-9, 60, 3) for b in range(-9, 60, 4)]
            assert any(evaluated(shorter, *call) != evaluated(block, *call) for call in calls)
