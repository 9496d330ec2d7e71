"""Work on a job that was stopped: nothing is made of one that was called off, and solvers that gave way begin anew."""

from __future__ import annotations

from pathlib import Path

import pytest

from appliance.audit.log import log_file
from appliance.audit.machine_keys import load_or_make
from appliance.jobs.lifecycle import GAVE_WAY
from appliance.jobs.solve import JobSolver
from appliance.ledger.audited import AuditedLedger
from appliance.ledger.sqlite import SqliteLedger
from appliance.records.jobs import Job, JobState
from appliance.system.clock import utc_now
from verifiers.checker import Checker
from verifiers.predicate.spec import PredicateSpec

AT = "2026-05-01T12:00:00+00:00"
JOB = Job(
    id="job-1",
    question="Which x has 7x + 3 = 45?",
    spec=PredicateSpec(predicate="7*x + 3 == 45", domain="integer"),
    state=JobState.QUEUED,
    created=AT,
    updated=AT,
)


@pytest.mark.parametrize("when", ["while it is verified", "while its bundle is written"])
def test_a_job_that_was_called_off_meanwhile_has_no_bundle(tmp_path: Path, when: str) -> None:
    job, key = JOB, load_or_make(tmp_path, "daemon")
    with AuditedLedger(tmp_path / "ledger.sqlite3", log_file(tmp_path), key, utc_now) as ledger, Checker() as checker:
        ledger.put_job(job)

        def call_off() -> None:
            ledger.put_job(job.model_copy(update={"state": JobState.CANCELLED, "reason": "cancelled by a person"}))

        def now() -> str:
            if (tmp_path / "artifacts" / job.id).exists():
                call_off()
            return AT

        def say(step: str, tries: int) -> None:
            if when == "while it is verified" and step.startswith("verifying"):
                call_off()

        solver = JobSolver(None, None, checker, ledger, tmp_path, {}, now)
        assert solver.solve(job, [], say=say).state is JobState.CANCELLED
        assert ledger.job(job.id).state is JobState.CANCELLED
        assert ledger.artifacts() == []
    assert [*(tmp_path / "artifacts").glob("*")] == []


def test_solvers_that_gave_way_to_a_more_urgent_job_begin_anew(tmp_path: Path) -> None:
    """Else the job waited for a model, without one for ever, though nothing had tried it."""
    urgent = False

    def say(step: str, tries: int) -> None:
        nonlocal urgent
        urgent = True

    with SqliteLedger(tmp_path / "ledger.sqlite3") as ledger, Checker() as checker:
        ledger.put_job(JOB)
        solver = JobSolver(None, None, checker, ledger, tmp_path, {}, lambda: AT)
        stopped = solver.solve(JOB, [], stop_reason=lambda: GAVE_WAY if urgent else "", say=say)
        assert (stopped.reason, stopped.solvers_done) == (GAVE_WAY, False)
        ledger.put_job(stopped.model_copy(update={"state": JobState.QUEUED}))
        again = ledger.next_job(part="solvers")
        assert again is not None
        solved = solver.solve(again, [])
        assert (solved.state, solved.solvers_done) == (JobState.SOLVED, True)
