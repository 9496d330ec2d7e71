"""Without any model: a job of each kind is solved by a solver and verified, and one that cannot be solved says so."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass

import pytest
from short_nights import AT

from appliance.jobs.check import check_bundle
from appliance.jobs.solve import Solver
from appliance.jobs.solvers import solvers_for
from appliance.records import Job, JobFile, JobState
from appliance.worker.equipment import Equipment
from verifiers.checklists.spec import FormatItem, JsonItem
from verifiers.programs.spec import Example
from verifiers.spec import ChecklistSpec, IntegerSpec, LeanSpec, PredicateSpec, ProgramSpec, SmtSpec, Spec

SALES = b"region,amount\nnorth,10.5\nsouth,20\nnorth,1.5\n"
SCHEMA = {
    "type": "object",
    "required": ["name", "year"],
    "properties": {"name": {"type": "string"}, "year": {"type": "integer"}},
    "additionalProperties": False,
}


def program(function: str, *examples: tuple[str, str]) -> ProgramSpec:
    """The last two are hidden."""
    shown = len(examples) - 2
    return ProgramSpec(
        function=function,
        examples=tuple(
            Example(arguments=arguments, expected=expected, visible=place < shown)
            for place, (arguments, expected) in enumerate(examples)
        ),
    )


def checklist(schema: object) -> ChecklistSpec:
    return ChecklistSpec(
        items=(FormatItem(name="form", format="json"), JsonItem(name="fits", rules=json.dumps(schema)))
    )


@dataclass(frozen=True)
class Case:
    question: str
    spec: Spec
    by: str = ""
    says: str = ""
    files: tuple[tuple[str, bytes], ...] = ()


SOLVED = {
    "question": Case("Which x?", PredicateSpec(predicate="7*x + 3 == 45", domain="integer"), "z3"),
    "arithmetic": Case("What is 12*7 + 3?", IntegerSpec(expected="87"), "arithmetic"),
    "claim": Case(
        "So it is.", SmtSpec(claim="(declare-const x Int)(assert (> x 2))(assert (! (> x 1) :named goal))"), "z3"
    ),
    "program": Case(
        "The sum of both squares.",
        program("f", ("2, 3", "13"), ("1, 1", "2"), ("0, 5", "25"), ("-2, 7", "53"), ("9, 4", "97"), ("6, 6", "72")),
        "enumeration",
    ),
    "data": Case(
        "What is the sum of amount for north in sales.csv?",
        IntegerSpec(expected="12"),
        "column statistics",
        files=(("sales.csv", SALES),),
    ),
    "text": Case("A JSON object with name = Ada and year = 1815.", checklist(SCHEMA), "schema"),
}
UNSOLVED = {
    "question": Case("Which x?", PredicateSpec(predicate="x*x == -1", domain="integer"), says="no integer"),
    "claim": Case(
        "So it is not.",
        SmtSpec(claim="(declare-const x Int)(assert (> x 2))(assert (! (> x 5) :named goal))"),
        says="a counter-example, x = 3",
    ),
    "model": Case(
        "Which x?",
        SmtSpec(claim="(declare-const x Int)(assert (> x 2))(assert (< x 2))", question="model"),
        says="no values fulfil it",
    ),
}
"""That there is no answer is shown: no model is asked, then."""
LEFT = {
    "program": Case(
        "Nothing short does it.",
        program("f", ("1", "17"), ("2", "-4"), ("3", "1000003"), ("4", "0"), ("5", "77"), ("6", "1"), ("7", "5")),
        says="expressions were tried",
    ),
    "data": Case(
        "What is the sum of amount in sales.csv?",
        IntegerSpec(expected="99"),
        says="not",
        files=(("sales.csv", SALES),),
    ),
    "text": Case("A JSON object with name = Ada.", checklist(SCHEMA), says="year"),
}
"""What the solvers do not find waits for a model, with what was tried."""


def asked(equipment: Equipment, case: Case) -> Job:
    files = []
    for name, content in case.files:
        digest = hashlib.sha256(content).hexdigest()
        (equipment.data / "files").mkdir(exist_ok=True)
        (equipment.data / "files" / digest).write_bytes(content)
        files.append(JobFile(name=name, sha256=digest, bytes=len(content)))
    return Job(
        id="j1",
        question=case.question,
        spec=case.spec,
        files=tuple(files),
        budget_seconds=16 if case in LEFT.values() else None,
        state=JobState.QUEUED,
        created=AT,
        updated=AT,
    )


def solve(equipment: Equipment, job: Job) -> Job:
    ledger = equipment.ledger
    solver = Solver(None, None, equipment.checker, ledger, equipment.data, {}, lambda: AT, sessions=equipment.sessions)
    return solver.solve(job, [])


@pytest.mark.parametrize("kind", SOLVED)
def test_a_solver_answers_and_the_bundle_says_so(equipment: Equipment, kind: str) -> None:
    case = SOLVED[kind]
    ended = solve(equipment, asked(equipment, case))
    assert ended.state is JobState.SOLVED, (ended.reason, ended.tried)
    assert ended.solved_by.startswith(case.by)
    artifact = equipment.ledger.artifact("j1")
    assert artifact is not None
    assert (artifact.solved_by, artifact.weights) == (ended.solved_by, "")
    assert artifact.statement
    folder = equipment.data / artifact.folder
    report = check_bundle(folder, expect=artifact.manifest, checker=equipment.checker)
    assert report.ok, report.reasons
    told = json.loads((folder / "transcript.json").read_text())
    assert told[-1]["text"] == artifact.answer
    assert not any(entry["sampled"] for entry in told)


@pytest.mark.parametrize("kind", UNSOLVED)
def test_what_has_no_answer_ends_with_the_reason(equipment: Equipment, kind: str) -> None:
    case = UNSOLVED[kind]
    ended = solve(equipment, asked(equipment, case))
    assert ended.state is JobState.UNSOLVED, ended.reason
    assert case.says in ended.reason
    assert equipment.ledger.artifacts() == []


@pytest.mark.parametrize("kind", LEFT)
def test_what_no_solver_finds_waits_for_a_model_and_says_what_was_tried(equipment: Equipment, kind: str) -> None:
    case = LEFT[kind]
    left = solve(equipment, asked(equipment, case))
    assert (left.state, left.solvers_done) == (JobState.QUEUED, True)
    assert case.says in "\n".join(left.tried)


def test_without_lean_a_theorem_has_failed_and_is_not_unsolved(
    equipment: Equipment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LEAN_TOOLCHAIN", str(equipment.data))
    ended = solve(equipment, asked(equipment, Case("So it is.", LeanSpec(statement="theorem t : 1 = 1 := sorry"))))
    assert ended.state is JobState.FAILED
    assert "Lean" in ended.reason


def test_a_file_that_is_not_the_one_that_was_given_ends_the_job_as_failed(equipment: Equipment) -> None:
    job = asked(equipment, SOLVED["data"])
    (equipment.data / "files" / job.files[0].sha256).write_bytes(b"region,amount\nnorth,12\n")
    ended = solve(equipment, job)
    assert ended.state is JobState.FAILED
    assert "sales.csv" in ended.reason


def test_a_job_that_is_stopped_comes_back_unwritten_with_the_reason(equipment: Equipment) -> None:
    job = asked(equipment, SOLVED["question"])
    ledger = equipment.ledger
    solver = Solver(None, None, equipment.checker, ledger, equipment.data, {}, lambda: AT, sessions=equipment.sessions)
    ended = solver.solve(job, [], keep_on=lambda: "its time is over")
    assert (ended.state, ended.reason) == (JobState.UNSOLVED, "its time is over")
    assert ledger.job("j1") is None


def test_each_kind_has_its_solvers_and_a_text_that_nothing_pins_down_has_none(equipment: Equipment) -> None:
    for case in SOLVED.values():
        assert solvers_for(asked(equipment, case))
    assert solvers_for(asked(equipment, Case("Be brief.", checklist({}).model_copy(update={"items": ()})))) == []
