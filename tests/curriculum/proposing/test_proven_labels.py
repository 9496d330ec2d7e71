"""No task of a proposal without a label that was executed or proved: nothing else runs or type-checks."""

from __future__ import annotations

import ast
import copy
import pickle
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import get_type_hints

import pytest
from written import program

from curriculum.contract.task import Split, Task, asked
from curriculum.proposing.kind import Provers
from curriculum.proposing.labels import Basis, LabelError, ProposedQuestion, ProvenLabel, ProvenTask, proven_tasks
from curriculum.proposing.registry import KINDS
from verifiers.answers.spec import AnswerSpec

ROOT = Path(__file__).parents[3]
EXECUTE_AND_PROVE = {"labels.py", "execution.py", "puzzles.py", "statements.py"}


def question(of: str) -> ProposedQuestion:
    return ProposedQuestion(
        kind="deduction", of=of, key="k", messages=asked("1 + 1?"), specify=lambda answer: AnswerSpec(expected=answer)
    )


def test_a_label_is_minted_where_something_is_executed_or_proved_and_nowhere_else() -> None:
    named = {
        path.relative_to(ROOT).as_posix()
        for package in ("appliance", "curriculum", "policies", "runtime", "tui", "verifiers")
        for path in (ROOT / package).rglob("*.py")
        if "_minted" in path.read_text()
        and any(
            "_minted" in {getattr(node, "id", ""), getattr(node, "attr", ""), getattr(node, "name", "")}
            for node in ast.walk(ast.parse(path.read_text()))
        )
    }
    assert named == {f"curriculum/proposing/{name}" for name in EXECUTE_AND_PROVE}


def test_a_label_cannot_be_made_copied_changed_or_read_from_a_file(provers: Provers) -> None:
    made = KINDS["deduction"].make(program(), provers)
    label = made.label
    assert (label.answer, label.basis) == ("24", Basis.EXECUTED)
    with pytest.raises(LabelError):
        ProvenLabel(Basis.EXECUTED, "x", "25")
    for wrong in (lambda: setattr(label, "answer", "25"), lambda: copy.copy(label), lambda: pickle.dumps(label)):
        with pytest.raises(LabelError):
            wrong()
    with pytest.raises(LabelError):
        type("Voted", (ProvenLabel,), {})
    with pytest.raises(LabelError):
        type("Voted", (ProvenTask,), {})


def test_what_was_voted_for_becomes_no_task_and_enters_no_training_set(provers: Provers) -> None:
    made = KINDS["deduction"].make(program(), provers)
    voted = SimpleNamespace(basis=Basis.EXECUTED, of=made.label.of, answer="25")
    hollow = object.__new__(ProvenLabel)
    object.__setattr__(hollow, "of", made.label.of)
    object.__setattr__(hollow, "answer", "25")
    for false in (voted, hollow, "25", None):
        with pytest.raises(LabelError, match="not made by"):
            ProvenTask(question(made.label.of), false, "25", "proposed:x@0")
    with pytest.raises(LabelError, match="another statement"):
        ProvenTask(question("something else"), made.label, "24", "proposed:x@0")
    task = Task(taskset="proposed", level=0, seed=0, split=Split.TRAIN, messages=asked("?"), spec=made.task.spec)
    hull = object.__new__(ProvenTask)
    hull.task, hull.label = task, hollow
    for false in (task, hull, voted, [made, task], {"task": task}):
        with pytest.raises(LabelError, match="executed or proved"):
            proven_tasks(false)
    assert proven_tasks([made]) == [made.task]


def test_the_way_into_training_names_the_types_that_nothing_else_has() -> None:
    assert get_type_hints(ProvenTask.__init__)["label"] is ProvenLabel
    assert get_type_hints(proven_tasks)["found"] == Sequence[ProvenTask]


@pytest.mark.slow
def test_the_type_checker_refuses_a_label_by_vote(tmp_path: Path) -> None:
    file = tmp_path / "votes.py"
    file.write_text(
        "from curriculum.proposing.labels import ProvenLabel, ProvenTask, ProposedQuestion as Asks\n"
        "class Vote:\n    answer = '25'\n    of = ''\n"
        "def good(asks: Asks, label: ProvenLabel) -> ProvenTask:\n    return ProvenTask(asks, label, '', '')\n"
        "def bad(asks: Asks, label: Vote) -> ProvenTask:\n    return ProvenTask(asks, label, '', '')\n"
    )
    ran = subprocess.run(
        [sys.executable, "-m", "mypy", "--follow-imports=silent", "--config-file=pyproject.toml", str(file)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=240,
    )
    complaints = [line for line in ran.stdout.splitlines() if ": error:" in line]
    assert len(complaints) == 1, ran.stdout + ran.stderr
    assert 'incompatible type "Vote"; expected "ProvenLabel"' in complaints[0]
