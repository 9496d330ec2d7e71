"""The file of attempts: what a run finds there, and what it refuses."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest
from test_figures import PLAN, attempt

from appliance.errors import UsageError
from appliance.evaluation.plan import ATTEMPTS, AttemptFile, questions
from curriculum.contract.task import Split
from curriculum.seeds import split_of


def test_a_run_goes_on_with_what_is_whole_and_the_last_line_of_an_attempt_counts(tmp_path: Path) -> None:
    with AttemptFile(tmp_path / "run", PLAN, resume=False) as file:
        file.add([attempt("a", 0, "lost"), attempt("b", 0, "right")])
        file.add([attempt("a", 0, "wrong")])
    path = tmp_path / "run" / ATTEMPTS
    path.write_bytes(path.read_bytes() + b'{"question": "c", "tas')
    with AttemptFile(tmp_path / "run", PLAN, resume=True) as file:
        assert {place: one.outcome for place, one in file.found.items()} == {("a", 0): "wrong", ("b", 0): "right"}
        file.add([attempt("c", 0, "right")])
    assert len(path.read_bytes().splitlines()) == 4


def test_a_folder_of_another_run_is_refused(tmp_path: Path) -> None:
    with AttemptFile(tmp_path, PLAN, resume=False), pytest.raises(UsageError, match="another run is writing"):
        AttemptFile(tmp_path, PLAN, resume=True)
    with pytest.raises(UsageError, match="already contains a run"):
        AttemptFile(tmp_path, PLAN, resume=False)
    with pytest.raises(UsageError, match="belongs to a different run"):
        AttemptFile(tmp_path, PLAN.model_copy(update={"repeats": 3}), resume=True)
    (tmp_path / ATTEMPTS).write_text("{}\n")
    with pytest.raises(UsageError, match="invalid line"):
        AttemptFile(tmp_path, PLAN, resume=True)


def test_a_plan_that_could_not_be_written_is_not_there_and_the_run_begins_anew(tmp_path: Path) -> None:
    most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (16, most[1]))
    try:
        with pytest.raises(OSError, match="too large"):
            AttemptFile(tmp_path, PLAN, resume=False)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, most)
    assert not (tmp_path / "plan.json").exists()
    with AttemptFile(tmp_path, PLAN, resume=False) as file:
        assert file.found == {}


def test_questions_are_of_the_validation_split_over_all_levels_and_the_same_for_a_plan() -> None:
    plan = PLAN.model_copy(update={"items": 5, "seeds": (0, 1)})
    asked = questions(plan)
    assert len(asked) == 2 * 2 * 5 == len({one.task.key for one in asked})
    assert {split_of(one.task.seed) for one in asked} == {Split.VALIDATION}
    assert {one.task.level for one in asked if one.task.taskset == "modular_arithmetic"} == set(range(5))
    assert questions(plan) == asked
    assert {one.task.id for one in questions(plan.model_copy(update={"seeds": (2,)}))}.isdisjoint(
        one.task.id for one in asked
    )


def test_a_line_holds_no_question_and_no_answer() -> None:
    assert set(attempt("a", 0, "right").model_dump()) == {
        "question", "taskset", "level", "topic", "seed", "repeat", "outcome", "ended", "tokens", "calls",
        "failed_calls", "seconds",
    }  # fmt: skip
