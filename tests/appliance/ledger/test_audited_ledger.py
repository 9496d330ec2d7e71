"""What of a night's work counts is what the audit log carries: answers of an evaluation, and steps of training."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import ledger_records as made
import pytest

from appliance.audit.log import log_file
from appliance.audit.machine_keys import load_or_make
from appliance.ledger import audited, rows, sqlite_jobs
from appliance.ledger.audited import AuditedLedger, TamperedError
from appliance.ledger.ledger import LedgerError
from appliance.ledger.sqlite import SqliteLedger
from appliance.records.jobs import Artifact, Job, JobState, Validation
from appliance.records.rollouts import Purpose
from appliance.records.training import RolloutFilter
from appliance.system.clock import utc_now


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[AuditedLedger]:
    key = load_or_make(tmp_path, "daemon")
    with AuditedLedger(tmp_path / "ledger.sqlite3", log_file(tmp_path), key, utc_now) as opened:
        yield opened


def execute(ledger: AuditedLedger, text: str) -> None:
    with closing(sqlite3.connect(ledger.data / "ledger.sqlite3", timeout=10)) as connection:
        connection.execute(text)
        connection.commit()


def test_planted_answers_of_an_evaluation_are_not_there_and_changed_ones_are_refused(ledger: AuditedLedger) -> None:
    answers = [made.judged(f"answer-{n}", purpose=Purpose.EVALUATION) for n in range(3)]
    with SqliteLedger(ledger.data / "ledger.sqlite3") as beside:
        beside.put_rollouts(answers)
    cycle, step = answers[0].rollout.cycle, answers[0].rollout.step

    def read() -> list[object]:
        return [*ledger.rollouts(RolloutFilter(cycle=cycle, purpose=Purpose.EVALUATION, step=step), limit=3)]

    assert read() == []
    ledger.put_rollouts(answers)
    assert read() == answers[::-1]
    execute(ledger, "DELETE FROM rollouts WHERE sequence = (SELECT max(sequence) FROM rollouts)")
    with pytest.raises(TamperedError, match="the answers of evaluation"):
        read()


def test_what_was_trained_on_cannot_be_made_less_or_other(ledger: AuditedLedger) -> None:
    """Contamination is looked for in it."""
    steps = [made.step_record(step=step) for step in range(2)]
    for step in steps:
        ledger.commit_step(step)
    cycle = steps[0].cycle
    assert len(ledger.step_tasks(cycle)) == sum(len(step.tasks) for step in steps)
    assert ledger.mismatches(None) == []
    execute(ledger, "DELETE FROM steps WHERE step = 1")
    assert ledger.mismatches(None) == [f"the steps of {cycle} are not those of the log"]
    with pytest.raises(TamperedError, match="the steps of"):
        ledger.step_tasks(cycle)


def test_a_job_that_an_earlier_version_ended_stays_as_the_log_says(
    ledger: AuditedLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That version did not know every field. What is written after the end leaves its text alone."""

    def as_earlier(record: Job) -> str:
        return json.dumps(
            {name: value for name, value in record.model_dump(mode="json").items() if name != "replay_of"}
        )

    with monkeypatch.context() as earlier:
        for place in (audited, sqlite_jobs):
            earlier.setattr(place, "payload_of", as_earlier)
        ledger.put_job(made.job())
        ended = ledger.put_job(made.job(state=JobState.UNSOLVED))
    assert ledger.mismatches(None) == []
    given = Validation(verdict="meant", shown="0", person="Ada", created=made.AT, key="k", envelope="ü")
    assert ledger.put_validation(ended.id, given).validation == given
    assert ledger.put_job(ended.model_copy(update={"spent_seconds": 2.5})).spent_seconds == 2.5
    assert ledger.put_validation(ended.id, None).validation is None
    assert ledger.mismatches(None) == []
    assert ledger.ended_jobs() == [ended.model_copy(update={"spent_seconds": 2.5})] == [ledger.job(ended.id)]
    assert "replay_of" not in ledger.rows(rows.select(sqlite_jobs.JOBS.c.payload))[0].payload


def bundle_of(job: Job) -> Artifact:
    return made.artifact(job.id).model_copy(update={"job": job.id, "solved_by": "z3"})


@pytest.mark.parametrize("state", [JobState.CANCELLED, JobState.UNSOLVED, JobState.FAILED])
def test_a_job_whose_artifact_is_on_record_ends_solved_whoever_ends_it(ledger: AuditedLedger, state: JobState) -> None:
    job = ledger.put_job(made.job(state=JobState.RUNNING))
    ledger.put_artifact(bundle_of(job))
    ended = ledger.put_job(job.model_copy(update={"state": state, "reason": "cancelled by a person"}))
    assert (ended.state, ended.artifact, ended.solved_by) == (JobState.SOLVED, job.id, "z3")
    (entry,) = [one for one in ledger.audit.entries() if one.kind == "job.ended"]
    assert (entry.what["state"], entry.what["bundle"]) == ("solved", made.digest(70))


def test_a_job_that_has_ended_without_an_artifact_gets_none(ledger: AuditedLedger) -> None:
    job = ledger.put_job(made.job(state=JobState.RUNNING))
    ledger.put_job(job.model_copy(update={"state": JobState.CANCELLED}))
    with pytest.raises(LedgerError, match="has ended already: cancelled"):
        ledger.put_artifact(bundle_of(job))
    assert ledger.artifacts() == []
