"""A job is tried by the champion, verified, and comes back as a bundle, or says what was tried."""

from __future__ import annotations

from short_nights import AT, FIXTURE

from appliance.inference.folder import read_model
from appliance.jobs.check import check_bundle
from appliance.jobs.solve import JobSolver, attempts
from appliance.ledger.sqlite import SqliteLedger
from appliance.records.jobs import Job, JobState
from appliance.rendering.formats import load_renderer
from appliance.worker.setup.context import WorkContext
from curriculum.seeds import derive
from runtime.errors import InfrastructureError
from runtime.sandbox import Priority, Session, Tier
from verifiers.answers.spec import AnswerSpec
from verifiers.predicate.spec import PredicateSpec
from verifiers.registry.spec import Spec


def job(question: str, spec: Spec, tries: int) -> Job:
    """What only the policy model is asked: the solvers have been there."""
    return Job(
        id="j1",
        question=question,
        spec=spec,
        attempts=tries,
        solvers_done=True,
        state=JobState.QUEUED,
        created=AT,
        updated=AT,
    )


def solve(context: WorkContext, job: Job) -> Job:
    context.engine.push(read_model(FIXTURE), "fixture")
    renderer = load_renderer(read_model(FIXTURE))
    agent = context.agent(renderer)
    solver = JobSolver(agent, renderer, context.checker, context.ledger, context.data, {}, lambda: AT)
    return solver.solve(job, attempts(job, temperature=1.0, derive=derive, policy=context.policy))


def test_a_solved_job_is_a_bundle_that_verifies(context: WorkContext, ledger: SqliteLedger) -> None:
    spec = PredicateSpec(predicate="7*x + 3 == 45", domain="integer")
    ended = solve(context, job("find x with 7x+3=45", spec, 64))
    assert ended.state is JobState.SOLVED
    artifact = ledger.artifact("j1")
    assert artifact is not None
    assert artifact.answer == "6"
    report = check_bundle(context.data / artifact.folder, expect=artifact.manifest, checker=context.checker)
    assert report.ok
    text = (context.data / artifact.folder / "transcript.json").read_text()
    assert "7*x" not in text


def test_an_unsolved_job_says_what_was_tried(context: WorkContext, ledger: SqliteLedger) -> None:
    asked = job("gcd of 12 and 18?", AnswerSpec(notation="digits", expected="99"), 8).model_copy(
        update={"solvers_done": False}
    )
    ended = solve(context, asked)
    assert ended.state is JobState.UNSOLVED
    assert "arithmetic: no arithmetic in the question" in ended.tried
    assert len(ended.tried) > 1
    assert ended.artifact is None
    assert ledger.artifacts() == []
    assert not (context.data / "artifacts").exists()


class NoSandboxes:
    def open(self, *, tier: Tier = Tier.SHARED, caller: str = "", priority: Priority = Priority.TRAINING) -> Session:
        raise InfrastructureError("the sandbox died")

    def stats(self) -> dict[str, float]:
        return {}

    def close(self) -> None: ...


def test_a_job_whose_sandboxes_died_has_failed_and_says_nothing_about_the_question(context: WorkContext) -> None:
    context.sessions.close()
    context.sessions = NoSandboxes()
    spec = PredicateSpec(predicate="7*x + 3 == 45", domain="integer")
    ended = solve(context, job("gcd of 12 and 18?", spec, 4))
    assert ended.state is JobState.FAILED
    assert ended.artifact is None


def test_a_job_killed_after_its_artifact_was_recorded_keeps_that_bundle(
    context: WorkContext, ledger: SqliteLedger
) -> None:
    spec = PredicateSpec(predicate="7*x + 3 == 45", domain="integer")
    asked = job("find x with 7x+3=45", spec, 64)
    first = solve(context, asked)
    made = ledger.artifacts()
    again = solve(context, asked)
    assert first.state is again.state is JobState.SOLVED
    assert ledger.artifacts() == made
    assert check_bundle(context.data / made[0].folder, expect=made[0].manifest, checker=context.checker).ok


def test_a_job_killed_before_its_artifact_was_recorded_is_done_again(
    context: WorkContext, ledger: SqliteLedger
) -> None:
    spec = PredicateSpec(predicate="7*x + 3 == 45", domain="integer")
    half_done = context.data / "artifacts" / "j1"
    half_done.mkdir(parents=True)
    (half_done / "artifact.txt").write_text("7")
    solve(context, job("find x with 7x+3=45", spec, 64))
    (artifact,) = ledger.artifacts()
    assert check_bundle(half_done, expect=artifact.manifest, checker=context.checker).ok
