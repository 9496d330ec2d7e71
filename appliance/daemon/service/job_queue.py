"""Submits, cancels and retries jobs, and ends waiting ones past their deadline.

Invariants: an admitted job's files are on disk, in the stated size; a job is ended here only if it has not ended
before, because the ledger never changes an ended job.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from appliance.client.messages import StoredFile, SubmitJob
from appliance.config.configuration import Settings
from appliance.daemon.contract import BrokenError, EventLog, RefusedByPolicyError, RequestError
from appliance.daemon.views.ledger_views import job_named
from appliance.jobs.lifecycle import WAITS, WAITS_FOR_MODEL, JobFiles, asked_again, overdue, taken_up_again
from appliance.jobs.solver_round import solvers_for
from appliance.ledger.sqlite import SqliteLedger
from appliance.records.jobs import MAX_JOB_BYTES, MAX_JOB_FILE_BYTES, Job, JobFile, JobState, work_of
from policies.contract.decision import moment
from policies.permissions import job_refused
from policies.policy import Policy
from verifiers.contract.kinds import AnswerForm
from verifiers.registry import check_spec, kind_of

NO_SPEC = (
    'add a check of the answer: --check "7*x+3 == 45" (no known answer needed), --expect ANSWER '
    "(never shown to the agent), --spec, --claim, --statement, --checklist or --family"
)
JOB_RULES = "change the job, or let the owner change [jobs] in the policy"
CHECK_AGAIN_SECONDS = 10.0
"""Delay before an overdue running job is checked again, in seconds; its worker should end it."""


@dataclass(frozen=True)
class JobQueue:
    """Admits, cancels, retries and ends jobs; thread-safe. `policy` returns the one in force."""

    ledger: SqliteLedger
    files: JobFiles
    settings: Settings
    policy: Callable[[], Policy]
    now: Callable[[], str]
    events: EventLog
    _admitting: threading.Lock = field(default_factory=threading.Lock)
    """Makes counting the queue and adding a job atomic."""

    def open(self) -> None:
        """Removes files of no job, and requeues jobs that a previous process left running. Called under the data
        folder's lock. Raises OSError."""
        self.files.sweep(self.ledger.job_files())
        for job in self.ledger.unended_jobs():
            if job.state is JobState.RUNNING:
                self.ledger.put_job(taken_up_again(job, self.ledger, self.now()))

    def put_file(self, content: bytes) -> StoredFile:
        """Stores a file for a future job. Raises RequestError, BrokenError."""
        if len(content) > MAX_JOB_FILE_BYTES:
            raise RequestError(
                f"a file of {len(content)} bytes is too large", hint=f"at most {MAX_JOB_FILE_BYTES >> 20} MiB each"
            )
        try:
            return StoredFile(sha256=self.files.put(content), bytes=len(content))
        except OSError as error:
            raise BrokenError(
                f"the file cannot be stored: {error.strerror}", hint="free some space on the disk"
            ) from error

    def submit(self, wanted: SubmitJob, *, name: str | None = None, solvers: bool = True) -> Job:
        """Queues a job, or returns the existing job named `name`. Without `solvers` only the model works on it.

        Raises RequestError for a missing or undecidable spec, a past deadline or missing files, and
        RefusedByPolicyError.
        """
        known = self.ledger.job(name) if name is not None else None
        if known is not None:
            return known
        if wanted.spec is None:
            raise RequestError("a question without a check cannot be answered with evidence", hint=NO_SPEC)
        check_spec(wanted.spec)
        kind = kind_of(wanted.spec)
        if kind.answer_form(wanted.spec) is AnswerForm.WORLD:
            raise RequestError(
                f"the check `{kind.name}` judges a world, and a job has none",
                hint="`assay curriculum try` works on such a task; docs/jobs.md has the checks that jobs take",
            )
        now = self.now()
        given: dict[str, Any] = {field: getattr(wanted, field) for field in SubmitJob.model_fields}
        given["files"] = self._checked(wanted.files)
        given["attempts"] = wanted.attempts if wanted.attempts is not None else self.settings.jobs.attempts
        given["deadline"] = self._in_time(wanted.deadline)
        identity = name or f"job-{secrets.token_hex(6)}"
        state = JobState.QUEUED
        return self._queue(Job(**given, id=identity, solvers_done=not solvers, state=state, created=now, updated=now))

    def cancel(self, name: str) -> Job:
        """Cancels a job and returns it; a worker on it stops within a second.

        Raises NotThereError, and RefusedByPolicyError for a job that has ended in another way.
        """
        job = job_named(self.ledger, name)
        update = {"state": JobState.CANCELLED, "step": "", "reason": "cancelled by a person", "updated": self.now()}
        ended = self.ledger.put_job(job.model_copy(update=update))
        if ended.state is not JobState.CANCELLED:
            raise RefusedByPolicyError(
                f"{job.id} has ended already: {ended.state.value}", hint=f"see `assay jobs show {job.id}`"
            )
        return ended

    def retry(self, name: str) -> Job:
        """Queues a copy of an ended job with the next seed; a past deadline is dropped.

        Raises NotThereError, and RefusedByPolicyError for an unended job.
        """
        job = job_named(self.ledger, name)
        if not job.state.ended:
            raise RefusedByPolicyError(
                f"{job.id} has not ended: it is {job.state.value}",
                hint=f"wait for it (`assay jobs watch {job.id}`), or cancel it first",
            )
        now = self.now()
        again = asked_again(
            job,
            now,
            id=f"job-{secrets.token_hex(6)}",
            seed=job.seed + 1,
            priority=job.priority,
            deadline=job.deadline if job.deadline is not None and moment(job.deadline) > moment(now) else None,
            retry_of=job.id,
        )
        return self._queue(again)

    def resume(self, name: str) -> Job:
        """Resumes a parked job. Raises NotThereError, and RefusedByPolicyError for any other job."""
        job = job_named(self.ledger, name)
        if job.state is not JobState.SET_ASIDE:
            raise RefusedByPolicyError(
                f"{job.id} is not parked: it is {job.state.value}", hint=f"see `assay jobs show {job.id}`"
            )
        self.ledger.leases.revive(work_of(job.id))
        update = {"state": JobState.QUEUED, "reason": "", "updated": self.now()}
        return self.ledger.put_job(job.model_copy(update=update))

    def end_overdue(self) -> float | None:
        """Ends waiting jobs past their limits. Returns the seconds until the next call; None without deadlines.

        The worker ends a running job; if it dies, the job waits again.
        """
        now = self.now()
        left: list[float] = []
        for job in self.ledger.unended_jobs():
            reason = overdue(job, now)
            if reason and job.state is not JobState.RUNNING:
                update = {"state": JobState.UNSOLVED, "reason": reason, "updated": now}
                self.ledger.put_job(job.model_copy(update=update))
            elif reason:
                left.append(CHECK_AGAIN_SECONDS)
            elif job.deadline is not None:
                left.append((moment(job.deadline) - moment(now)).total_seconds())
        return min(left) if left else None

    def _queue(self, job: Job) -> Job:
        with self._admitting:
            return self._admit(job)

    def _admit(self, job: Job) -> Job:
        queued = self.ledger.job_counts().get(JobState.QUEUED.value, 0)
        refused = job_refused((job.spec.kind, job.kind), job.attempts, queued, self.policy().jobs)
        if refused:
            self.events.add("governance", f"a job was refused: {refused}")
            raise RefusedByPolicyError(f"the policy does not admit this job: {refused}", hint=JOB_RULES)
        if job.solvers_done or not solvers_for(job):
            waits = WAITS_FOR_MODEL if self.ledger.alias("champion") else WAITS
            job = job.model_copy(update={"solvers_done": True, "reason": waits})
        return self.ledger.put_job(job)

    def _checked(self, files: tuple[JobFile, ...]) -> tuple[JobFile, ...]:
        if len({file.name for file in files}) < len(files):
            raise RequestError("two files have the same name", hint="each lies in one folder: rename one of them")
        if sum(file.bytes for file in files) > MAX_JOB_BYTES:
            raise RequestError("the files are too large", hint=f"at most {MAX_JOB_BYTES >> 20} MiB together")
        for file in files:
            if self.files.size(file.sha256) != file.bytes:
                raise RequestError(f"the file {file.name} was not uploaded", hint="send it first, then the job again")
        return files

    def _in_time(self, deadline: str | None) -> str | None:
        """Returns a job's deadline in UTC. Raises RequestError for an invalid or past one."""
        if deadline is None:
            return None
        try:
            wanted = datetime.fromisoformat(deadline)
            in_utc = wanted.astimezone(UTC).isoformat(timespec="seconds")
        except (ValueError, OverflowError):  # years 1 and 9999 can overflow in UTC
            wanted = None
        if wanted is None or wanted.tzinfo is None:
            raise RequestError(
                f"invalid deadline {deadline[:40]!r}",
                hint="give a time with its zone, such as 2026-05-01T18:00:00+00:00",
            )
        if wanted <= moment(self.now()):
            raise RequestError("the deadline is in the past", hint="name a later one")
        return in_utc
