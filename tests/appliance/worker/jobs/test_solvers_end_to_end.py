"""Without any model: a job of each kind is solved by a solver and verified, and one that cannot be solved says so."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from short_nights import AT, FIXTURE, SHORT

from appliance.inference.folder import read_model
from appliance.jobs.check import check_bundle
from appliance.jobs.solve import JobSolver, attempts
from appliance.jobs.solver_round import solvers_for
from appliance.jobs.validation import content_of, in_words
from appliance.ledger.sqlite import SqliteLedger
from appliance.records.jobs import Job, JobFile, JobState, Validation
from appliance.rendering.formats import load_renderer
from appliance.settings.policy_files import load_policy
from appliance.worker.setup.context import WorkContext
from curriculum.seeds import derive
from policies.envelopes import Signer, sign_envelope
from policies.statements import VALIDATION_TYPE, Page, SignedValidation
from runtime.errors import InfrastructureError
from runtime.settings import RuntimeSettings
from verifiers.answers.spec import AnswerSpec
from verifiers.checker import Checker
from verifiers.checklists.spec import ChecklistSpec, CountItem, FormatItem, JsonItem
from verifiers.contract.protocols import ProposalReply
from verifiers.lean.spec import LeanSpec
from verifiers.predicate.spec import PredicateSpec
from verifiers.programs.data.generators import Integers, Lists
from verifiers.programs.spec import Example, ProgramSpec
from verifiers.programs.trivial import HINT
from verifiers.registry.spec import Spec
from verifiers.smt.spec import SmtSpec

SALES = b"region,amount\nnorth,10.5\nsouth,20\nnorth,1.5\n"
ABOVE_TWO = "(declare-const x Int)(assert (> x 2))"
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
    "arithmetic": Case("What is 12*7 + 3?", AnswerSpec(notation="digits", expected="87"), "arithmetic"),
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
        AnswerSpec(notation="digits", expected="12"),
        "column statistics",
        files=(("sales.csv", SALES),),
    ),
    "text": Case("A JSON object with name = Ada and year = 1815.", checklist(SCHEMA), "schema"),
}
UNSOLVED = {
    "question": Case("Which x?", PredicateSpec(predicate="x*x == -1", domain="integer"), says="no integer"),
    "claim": Case(
        "So it is not.", SmtSpec(claim=ABOVE_TWO + "(assert (! (> x 5) :named goal))"), says="a counter-example, x = 3"
    ),
    "model": Case(
        "Which x?", SmtSpec(claim=ABOVE_TWO + "(assert (< x 2))", question="model"), says="no values satisfy it"
    ),
}
"""That there is no answer is shown: no model is asked, then."""
LEFT = {
    "program": Case(
        "Nothing short does it.",
        program("f", ("1", "17"), ("2", "-4"), ("3", "1000003"), ("4", "0"), ("5", "77"), ("6", "1"), ("7", "5")),
        says="enumeration: ",
    ),
    "data": Case(
        "What is the sum of amount in sales.csv?",
        AnswerSpec(notation="digits", expected="99"),
        says="a different integer",
        files=(("sales.csv", SALES),),
    ),
    "text": Case("A JSON object with name = Ada.", checklist(SCHEMA), says="year"),
}
"""What the solvers do not find waits for a model, with what was tried."""


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory, runtime: RuntimeSettings) -> Iterator[WorkContext]:
    """One pool and one checker for all of these tests; each has a ledger and a data folder of its own."""
    data = tmp_path_factory.mktemp("shared")
    with (
        SqliteLedger(data / "ledger.sqlite3") as ledger,
        WorkContext(data, ledger, runtime, SHORT.agent, load_policy(data)) as opened,
    ):
        yield opened


def asked(case: Case, data: Path, budget: float | None = None) -> Job:
    files = []
    for name, content in case.files:
        digest = hashlib.sha256(content).hexdigest()
        (data / "files").mkdir(exist_ok=True)
        (data / "files" / digest).write_bytes(content)
        files.append(JobFile(name=name, sha256=digest, bytes=len(content)))
    return Job(
        id="j1",
        question=case.question,
        spec=case.spec,
        files=tuple(files),
        budget_seconds=budget,
        state=JobState.QUEUED,
        created=AT,
        updated=AT,
    )


@dataclass(frozen=True)
class Place:
    """Where a test's jobs are worked on, without a model."""

    ledger: SqliteLedger
    data: Path
    solver: JobSolver


@pytest.fixture
def place(ledger: SqliteLedger, tmp_path: Path, shared: WorkContext) -> Place:
    solver = JobSolver(None, None, shared.checker, ledger, tmp_path, {}, lambda: AT, sessions=shared.sessions)
    return Place(ledger, tmp_path, solver)


@pytest.mark.parametrize("kind", SOLVED)
def test_a_solver_answers_and_the_bundle_says_so(place: Place, shared: WorkContext, kind: str) -> None:
    case = SOLVED[kind]
    ended = place.solver.solve(asked(case, place.data), [])
    assert ended.state is JobState.SOLVED, (ended.reason, ended.tried)
    assert ended.solved_by.startswith(case.by)
    artifact = place.ledger.artifact("j1")
    assert artifact is not None
    assert (artifact.solved_by, artifact.weights) == (ended.solved_by, "")
    assert artifact.statement
    folder = place.data / artifact.folder
    report = check_bundle(folder, expect=artifact.manifest, checker=shared.checker)
    assert report.ok, report.reasons
    shown = json.loads((folder / "transcript.json").read_text())
    assert shown[-1]["text"] == artifact.answer
    assert not any(entry["sampled"] for entry in shown)


def test_a_validation_that_was_signed_before_it_is_solved_goes_into_the_bundle(
    place: Place, shared: WorkContext
) -> None:
    ada = Signer.of(Ed25519PrivateKey.from_private_bytes(b"a" * 32))
    job = asked(SOLVED["data"], place.data)
    page = Page(question=(job.question,), words=in_words(job.spec), first=(), examples=(), verifier="integer 1")
    about = {"verdict": "meant", "job": job.id, "content": content_of(job), "page": page}
    signed = SignedValidation.valid_for(24, made_at=AT, person="ada", nonce="0" * 32, **about)
    envelope = sign_envelope(signed.payload(), VALIDATION_TYPE, ada).decode("ascii")
    shown, key = page.digest(), ada.public.fingerprint
    place.ledger.put_job(job)
    place.ledger.put_validation(
        job.id, Validation(verdict="meant", shown=shown, person="ada", created=AT, key=key, envelope=envelope)
    )
    assert place.solver.solve(job, []).state is JobState.SOLVED
    report = check_bundle(place.data / "artifacts" / job.id, checker=shared.checker, people=[ada.public])
    assert (report.ok, report.mark) == (True, "verified and validated"), report.reasons
    assert check_bundle(place.data / "artifacts" / job.id, checker=shared.checker).mark == "verified, not validated"


@pytest.mark.slow
@pytest.mark.parametrize("kind", SOLVED)
def test_its_bundle_passes_in_a_fresh_process_that_knows_no_daemon(place: Place, tmp_path: Path, kind: str) -> None:
    place.solver.solve(asked(SOLVED[kind], place.data), [])
    home = tmp_path / "home"
    home.mkdir()
    alone = ["unshare", "--net"] if os.geteuid() == 0 else []
    ended = subprocess.run(
        [
            *alone,
            sys.executable,
            "-I",
            "-m",
            "appliance.cli.main",
            "verify",
            "--json",
            str(place.data / "artifacts/j1"),
        ],
        env={"HOME": str(home), "PATH": "/usr/bin:/bin"},
        cwd=home,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    report = json.loads(ended.stdout)
    assert (ended.returncode, report["ok"]) == (0, True), report["reasons"]


@pytest.mark.parametrize("kind", UNSOLVED)
def test_what_has_no_answer_ends_with_the_reason(place: Place, kind: str) -> None:
    case = UNSOLVED[kind]
    ended = place.solver.solve(asked(case, place.data).model_copy(update={"weights": "ab" * 32}), [])
    assert ended.state is JobState.UNSOLVED, ended.reason
    assert ended.weights == ""  # it says nothing about any model
    assert case.says in ended.reason
    assert place.ledger.artifacts() == []


@pytest.mark.parametrize("kind", LEFT)
def test_what_no_solver_finds_waits_for_a_model_and_says_what_was_tried(place: Place, kind: str) -> None:
    case = LEFT[kind]
    left = place.solver.solve(asked(case, place.data, budget=4), [])
    assert (left.state, left.solvers_done) == (JobState.QUEUED, True)
    assert case.says in "\n".join(left.tried)


CONTRADICTION = (CountItem(name="long", of="words", least=10), CountItem(name="short", of="words", most=5))


@pytest.mark.slow
@pytest.mark.parametrize("kind", [*LEFT, "contradiction"])
def test_what_nobody_finds_is_unsolved_once_a_model_was_asked(
    place: Place, shared: WorkContext, ledger: SqliteLedger, kind: str
) -> None:
    case = LEFT.get(kind) or Case("Write at length, and be brief.", ChecklistSpec(items=CONTRADICTION))
    shared.engine.push(read_model(FIXTURE), "fixture")
    renderer = load_renderer(read_model(FIXTURE))
    solver = JobSolver(
        shared.agent(renderer), renderer, shared.checker, ledger, place.data, {}, lambda: AT, sessions=shared.sessions
    )
    job = asked(case, place.data, budget=8).model_copy(update={"attempts": 2})
    ended = solver.solve(job, attempts(job, temperature=1.0, derive=derive, policy=shared.policy))
    assert ended.state is JobState.UNSOLVED, ended.reason
    assert case.says in "\n".join(ended.tried)
    assert ended.tries_done >= 2
    assert ledger.artifacts() == []


def test_without_lean_a_theorem_has_failed_and_is_not_unsolved(
    place: Place, runtime: RuntimeSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LEAN_TOOLCHAIN", str(place.data))
    with Checker(runtime) as checker:
        solver = JobSolver(None, None, checker, place.ledger, place.data, {}, lambda: AT)
        ended = solver.solve(asked(Case("So it is.", LeanSpec(statement="theorem t : 1 = 1 := sorry")), place.data), [])
    assert ended.state is JobState.FAILED
    assert "no Lean is installed" in ended.reason
    assert "LEAN_TOOLCHAIN" in ended.reason


def test_a_spec_that_only_a_sandbox_shows_to_be_weak_ends_its_job_before_any_attempt(place: Place) -> None:
    spec = ProgramSpec(
        function="f",
        inputs=(Lists(of=Integers(low=0, high=9)),),
        generate=6,
        properties=("def holds(result, x):\n    return len(result) == len(x)\n",),
    )
    ended = place.solver.solve(asked(Case("Sort it.", spec), place.data), [])
    assert ended.state is JobState.FAILED
    assert ended.reason == (
        "the spec is refused, nothing can be verified against it: a function that returns argument 1 passes every test "
        f"({HINT})"
    )
    assert (ended.tries_done, ended.tried) == (0, ())


def test_a_file_that_is_not_the_one_that_was_given_ends_the_job_as_failed(place: Place) -> None:
    job = asked(SOLVED["data"], place.data)
    (place.data / "files" / job.files[0].sha256).write_bytes(b"region,amount\nnorth,12\n")
    ended = place.solver.solve(job, [])
    assert ended.state is JobState.FAILED
    assert "sales.csv" in ended.reason


def test_a_job_that_is_stopped_comes_back_unwritten_with_the_reason(place: Place) -> None:
    ended = place.solver.solve(asked(SOLVED["question"], place.data), [], stop_reason=lambda: "its time is over")
    assert (ended.state, ended.reason) == (JobState.UNSOLVED, "its time is over")
    assert place.ledger.job("j1") is None


class Lost:
    """A checker whose worker is lost while it looks for an answer."""

    def propose(self, *_arguments: object) -> ProposalReply:
        raise InfrastructureError("the worker was lost")

    def check_many(self, pairs: Sequence[object], *_arguments: object) -> list[object]:
        return [None] * len(pairs)


def test_a_job_whose_solvers_were_lost_is_begun_anew_and_not_left_to_a_model(place: Place) -> None:
    solver = replace(place.solver, checker=Lost())
    with pytest.raises(InfrastructureError, match="the worker was lost"):
        solver.solve(asked(UNSOLVED["question"], place.data), [])
    assert place.ledger.job("j1") is None


def test_each_kind_has_its_solvers_and_a_text_that_nothing_pins_down_has_none(tmp_path: Path) -> None:
    assert all(solvers_for(asked(case, tmp_path)) for case in SOLVED.values())
    brief = ChecklistSpec(items=(FormatItem(name="form", format="plain"),))
    assert solvers_for(asked(Case("Be brief.", brief), tmp_path)) == []
