"""Jobs and artifacts in the SQLite ledger.

Invariants: a job that has ended keeps its text to the letter; only the fields that may change after the end are
rewritten, also by a later version. Work on a job never changes the request; an artifact is never replaced.
"""

from __future__ import annotations

import json
import threading
import time
from functools import partial

from pydantic import TypeAdapter
from sqlalchemy import Connection, Table, insert, select, true
from sqlalchemy import func as sql

from appliance.ledger.leases import Leases
from appliance.ledger.ledger import LedgerError
from appliance.ledger.rows import Rows, changed_in, is_prefix, payload_of, put_row, stored_in
from appliance.ledger.tables import ARTIFACTS, EVENTS, JOBS, NIGHTS, SCHEDULE
from appliance.records.cycles import Event
from appliance.records.jobs import Artifact, Job, JobPart, JobState, JobStep, Validation, work_of
from appliance.records.nights import Night, ScheduleState
from appliance.records.record import Record

OF_THE_WORK = (
    "state",
    "step",
    "weights",
    "steps",
    "tries_done",
    "solvers_done",
    "reason",
    "tried",
    "artifact",
    "solved_by",
    "updated",
)
"""Job fields that change while the job is worked on."""
USUAL_PRIORITY = 5
"""Priority of jobs recorded before priorities existed."""
MOST_WAIT_SECONDS = 3_600.0
JOB = "job-"
"""Prefix of the ids of submitted jobs."""


_STEPS = TypeAdapter(tuple[JobStep, ...])
EXCERPT = 80
"""Maximum characters of a question in an event."""


def _event_of(job: Job) -> Event:
    """Returns the event that a job reached its state, with the question of a new one, or else the reason."""
    said = job.question if job.state is JobState.QUEUED and not job.reason else job.reason
    state = job.state.value.replace("_", " ")
    text = f"{job.id} {state}: {' '.join(said.split())[:EXCERPT]}" if said else f"{job.id} {state}"
    return Event(kind="job", text=text, created=job.updated)


class JobRows(Rows):
    leases: Leases

    def __init__(self) -> None:
        self._news = threading.Condition()
        self._told = 0

    def put_job(self, job: Job) -> Job:
        with self._database.writing() as connection:
            stored = stored_in(connection, JOBS, job.id)
            known = None if stored is None else self._read(Job, stored)
            updated = job if known is None else moved_on(known, job)
            if stored is not None and known is not None and known.state.ended:
                _put_text(connection, updated, changed_in(stored, spent_seconds=updated.spent_seconds))
            else:
                put_job_row(connection, updated)
            if known is None or known.state is not updated.state:
                connection.execute(insert(EVENTS), {"payload": payload_of(_event_of(updated))})
        self.tell_waiting()
        return updated

    def put_validation(self, job: str, validation: Validation | None) -> Job:
        """Sets a person's validation of a job, also after the job has ended; None removes it. Returns the job.

        Not part of the protocol. Raises LedgerError if there is no such job.
        """
        with self._database.writing() as connection:
            stored = stored_in(connection, JOBS, job)
            if stored is None:
                raise LedgerError(f"no such job: {job!r}", hint="`assay jobs ls` lists jobs")
            given = None if validation is None else json.loads(payload_of(validation))
            text = changed_in(stored, validation=given)
            updated = self._read(Job, text)
            _put_text(connection, updated, text)
        return updated

    def job(self, job: str) -> Job | None:
        return self._one(Job, JOBS, job)

    def find_job(self, name: str) -> Job | None:
        """Returns a job by id or by unique first digits, with or without `job-`. Not part of the protocol.

        Raises AmbiguousPrefixError.
        """
        digits = name.lower().removeprefix(JOB)
        return self._begins(self.job, JOBS, name, f"{JOB}{digits}" if is_prefix(digits) else "", "job")

    def jobs(self, limit: int = 50) -> list[Job]:
        return self._newest(Job, JOBS, limit)

    def job_steps(self, kind: str, limit: int) -> list[tuple[JobStep, ...]]:
        of = partial(sql.json_extract, JOBS.c.payload)
        query = (
            select(of("$.steps"))
            .where(JOBS.c.state.in_([state.value for state in JobState if state.ended]))
            .where(of("$.spec.kind") == kind, sql.json_array_length(JOBS.c.payload, "$.steps") > 0)
            .where(of("$.retry_of").is_(None), of("$.replay_of").is_(None))
            .order_by(JOBS.c.sequence.desc())
            .limit(limit)
        )
        return [_STEPS.validate_json(text) for (text,) in self._rows(query)]

    def next_job(self, *, part: JobPart = "any") -> Job | None:
        query = select(JOBS.c.payload).where(JOBS.c.state.in_([JobState.QUEUED.value, JobState.RUNNING.value]))
        if part != "any":
            tried = sql.coalesce(sql.json_extract(JOBS.c.payload, "$.solvers_done"), 0)
            query = query.where(tried == int(part == "model"))
        urgent = sql.coalesce(sql.json_extract(JOBS.c.payload, "$.priority"), USUAL_PRIORITY)
        replayed = sql.json_extract(JOBS.c.payload, "$.replay_of").is_not(None)
        found = self._records(Job, query.order_by(replayed, urgent.desc(), JOBS.c.sequence).limit(1))
        return found[0] if found else None

    def claim_job(self, *, part: JobPart = "any", seconds: float = 0.0) -> Job | None:
        """Leases the next job to the acting worker, waiting up to `seconds` for one; None if the worker must end. For
        the core, which needs no lease, same as `next_job`."""
        holder = self.leases.holder
        if holder is None:
            return self.next_job(part=part)
        self.leases.release(holder, in_order=True)
        end = time.monotonic() + min(seconds, MOST_WAIT_SECONDS)
        while not holder.gone:
            with self._news:
                seen = self._told
            if not holder.may_claim():
                holder.sent_away = True
                return None
            if (job := self.next_job(part=part)) is not None:
                self.leases.take(work_of(job.id), holder)
                return job
            left = end - time.monotonic()
            if left <= 0 or not holder.may_wait():
                return None
            with self._news:
                if self._told == seen:
                    self._news.wait(left)
        return None

    def renew_leases(self) -> None:
        self.leases.renew()

    def tell_waiting(self) -> None:
        """Wakes every worker that waits for a job."""
        with self._news:
            self._told += 1
            self._news.notify_all()

    def job_counts(self) -> dict[str, int]:
        query = select(JOBS.c.state, sql.count()).group_by(JOBS.c.state)
        return {str(state): int(count) for state, count in self._rows(query)}

    def unended_jobs(self) -> list[Job]:
        """Returns queued, running and parked jobs, oldest first."""
        waiting = JOBS.c.state.in_([JobState.QUEUED.value, JobState.RUNNING.value, JobState.SET_ASIDE.value])
        return self._records(Job, select(JOBS.c.payload).where(waiting).order_by(JOBS.c.sequence))

    def job_files(self) -> set[str]:
        """Returns the digests of all files that belong to a job."""
        each = sql.json_each(JOBS.c.payload, "$.files").table_valued("value")
        query = select(sql.json_extract(each.c.value, "$.sha256")).select_from(JOBS).join(each, true())
        return {digest for (digest,) in self._rows(query)}

    def put_artifact(self, artifact: Artifact) -> None:
        self._put_once(ARTIFACTS, artifact.id, artifact)

    def artifact(self, artifact: str) -> Artifact | None:
        return self._one(Artifact, ARTIFACTS, artifact)

    def artifacts(self, limit: int = 50) -> list[Artifact]:
        """Returns the records of jobs' bundles, newest first."""
        return self._newest(Artifact, ARTIFACTS, limit)


def moved_on(stored: Job, given: Job) -> Job:
    """Returns the stored job with the progress of `given`; an ended job takes over only the time spent on it."""
    spent = max(stored.spent_seconds, given.spent_seconds)
    if stored.state.ended:
        return stored.model_copy(update={"spent_seconds": spent})
    update = {name: getattr(given, name) for name in OF_THE_WORK}
    return stored.model_copy(update={**update, "spent_seconds": spent})


def put_job_row(connection: Connection, job: Job) -> None:
    _put_text(connection, job, payload_of(job))


def _put_text(connection: Connection, job: Job, text: str) -> None:
    put_row(connection, JOBS, {"key": job.id, "state": job.state.value, "payload": text})


ONLY = "schedule"
"""Key of the single row of the schedule table."""


class NightRows(Rows):
    def put_night(self, night: Night) -> None:
        """Inserts or updates the record of a night."""
        self._write(NIGHTS, night.key, night)

    def night(self, key: str) -> Night | None:
        return self._one(Night, NIGHTS, key)

    def nights(self, limit: int = 20) -> list[Night]:
        """Returns the recorded nights in order of arrival, newest first."""
        return self._newest(Night, NIGHTS, limit)

    def put_schedule(self, state: ScheduleState) -> None:
        self._write(SCHEDULE, ONLY, state)

    def _write(self, table: Table, key: str, record: Record) -> None:
        """Inserts or updates a record without the audit log, which covers only decisions about models."""
        with self._database.writing() as connection:
            put_row(connection, table, {"key": key, "payload": payload_of(record)})

    def schedule(self) -> ScheduleState | None:
        return self._one(ScheduleState, SCHEDULE, ONLY)
