"""A job is tried by the champion, verified, and comes back as a bundle, or says what was tried."""

from __future__ import annotations

from short_nights import AT, FIXTURE

from appliance.agent.dialect import Codec
from appliance.jobs.check import check_bundle
from appliance.jobs.solve import Solver, attempts
from appliance.ledger.sqlite import SqliteLedger
from appliance.records import Job, JobState
from appliance.worker.equipment import Equipment
from appliance.worker.seeds import derive
from runtime.errors import InfrastructureError
from runtime.sandbox import Priority, Session, Tier
from verifiers.spec import IntegerSpec, PredicateSpec, Spec


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


def solve(equipment: Equipment, job: Job) -> Job:
    equipment.engine.load(FIXTURE, "fixture")
    codec = Codec.load(FIXTURE)
    agent = equipment.agent(codec)
    solver = Solver(agent, codec, equipment.checker, equipment.ledger, equipment.data, {}, lambda: AT)
    return solver.solve(job, attempts(job, temperature=1.0, derive=derive, policy=equipment.policy))


def test_a_solved_job_is_a_bundle_that_verifies(equipment: Equipment, ledger: SqliteLedger) -> None:
    spec = PredicateSpec(predicate="7*x + 3 == 45", domain="integer")
    ended = solve(equipment, job("find x with 7x+3=45", spec, 64))
    assert ended.state is JobState.SOLVED
    artifact = ledger.artifact("j1")
    assert artifact is not None
    assert artifact.answer == "6"
    report = check_bundle(equipment.data / artifact.folder, expect=artifact.manifest)
    assert report.ok
    words = (equipment.data / artifact.folder / "transcript.json").read_text()
    assert "7*x" not in words


def test_an_unsolved_job_says_what_was_tried(equipment: Equipment, ledger: SqliteLedger) -> None:
    asked = job("gcd of 12 and 18?", IntegerSpec(expected="99"), 8).model_copy(update={"solvers_done": False})
    ended = solve(equipment, asked)
    assert ended.state is JobState.UNSOLVED
    assert "arithmetic: no arithmetic in the question" in ended.tried
    assert len(ended.tried) > 1
    assert ended.artifact is None
    assert ledger.artifacts() == []
    assert not (equipment.data / "artifacts").exists()


class NoSandboxes:
    def open(self, *, tier: Tier = Tier.SHARED, caller: str = "", priority: Priority = Priority.TRAINING) -> Session:
        raise InfrastructureError("the sandbox died")

    def stats(self) -> dict[str, float]:
        return {}

    def close(self) -> None: ...


def test_a_job_whose_sandboxes_died_has_failed_and_says_nothing_about_the_question(equipment: Equipment) -> None:
    equipment.sessions.close()
    equipment.sessions = NoSandboxes()
    spec = PredicateSpec(predicate="7*x + 3 == 45", domain="integer")
    ended = solve(equipment, job("gcd of 12 and 18?", spec, 4))
    assert ended.state is JobState.FAILED
    assert ended.artifact is None


def test_a_job_killed_after_its_artifact_was_recorded_keeps_that_bundle(
    equipment: Equipment, ledger: SqliteLedger
) -> None:
    spec = PredicateSpec(predicate="7*x + 3 == 45", domain="integer")
    asked = job("find x with 7x+3=45", spec, 64)
    first = solve(equipment, asked)
    made = ledger.artifacts()
    again = solve(equipment, asked)
    assert first.state is again.state is JobState.SOLVED
    assert ledger.artifacts() == made
    assert check_bundle(equipment.data / made[0].folder, expect=made[0].manifest).ok


def test_a_job_killed_before_its_artifact_was_recorded_is_done_again(
    equipment: Equipment, ledger: SqliteLedger
) -> None:
    spec = PredicateSpec(predicate="7*x + 3 == 45", domain="integer")
    half_done = equipment.data / "artifacts" / "j1"
    half_done.mkdir(parents=True)
    (half_done / "artifact.txt").write_text("7")
    solve(equipment, job("find x with 7x+3=45", spec, 64))
    (artifact,) = ledger.artifacts()
    assert check_bundle(half_done, expect=artifact.manifest).ok
