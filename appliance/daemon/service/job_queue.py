"""Where jobs are asked for, called off and tried again; and where those end that nobody works on in time.

What always holds: what is admitted names files that are on disk, in the size named; a job is ended here only if
it has not ended before, because the ledger keeps an ended job as it is.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime

from appliance.client.messages import StoredFile, SubmitJob
from appliance.config.configuration import Settings
from appliance.daemon.contract.errors import BrokenError, RefusedByPolicyError, RequestError
from appliance.daemon.contract.events import EventLog
from appliance.daemon.views.ledger_views import job_named
from appliance.jobs.job_files import JobFiles
from appliance.jobs.lifecycle import WAITS, WAITS_FOR_MODEL, asked_again, overdue, taken_up_again
from appliance.jobs.solver_round import solvers_for
from appliance.ledger.sqlite import SqliteLedger
from appliance.records.jobs import MAX_JOB_BYTES, MAX_JOB_FILE_BYTES, Job, JobFile, JobState, work_of
from policies.contract.times import moment
from policies.jobs import job_refused
from policies.policy import Policy
from verifiers.contract.kinds import AnswerForm
from verifiers.registry import check_spec, kind_of, names_of

NO_SPEC = (
    'add what the answer is checked against: --check "7*x+3 == 45" (no known answer needed), --expect ANSWER '
    "(never shown to the agent), --spec, --claim, --statement, --checklist or --family"
)
JOB_RULES = "change the job, or let the owner change [jobs] in the policy"
CHECK_AGAIN_SECONDS = 10.0
"""At a job whose worker has yet to notice that its time is over."""


@dataclass(frozen=True)
class JobQueue:
    """Methods may be called from any thread. `policy` gives the one in force."""

    ledger: SqliteLedger
    files: JobFiles
    settings: Settings
    policy: Callable[[], Policy]
    now: Callable[[], str]
    events: EventLog
    _admitting: threading.Lock = field(default_factory=threading.Lock)
    """Those that wait are counted and one more is put there in one."""

    def open(self) -> None:
        """Clears up, under the data folder's lock, what the process before left. Raises OSError."""
        self.files.sweep(self.ledger.job_files())
        for job in self.ledger.unended_jobs():
            if job.state is JobState.RUNNING:
                self.ledger.put_job(taken_up_again(job, self.ledger, self.now()))

    def put_file(self, content: bytes) -> StoredFile:
        """Keeps a file for a job that is going to name it. Raises RequestError, BrokenError."""
        if len(content) > MAX_JOB_FILE_BYTES:
            raise RequestError(
                f"a file of {len(content)} bytes is too large", hint=f"at most {MAX_JOB_FILE_BYTES >> 20} MiB each"
            )
        try:
            return StoredFile(sha256=self.files.put(content), bytes=len(content))
        except OSError as error:
            raise BrokenError(
                f"the file cannot be kept: {error.strerror}", hint="free some space on the disk"
            ) from error

    def submit(self, wanted: SubmitJob, *, name: str | None = None, solvers: bool = True) -> Job:
        """Queues a job, under a name of its own if given; the job of that name when there is one already. Without
        `solvers` it is for the model alone.

        Raises RequestError for what cannot be: no spec, or one that decides nothing, a deadline that has passed, files
        that are not there. Raises RefusedByPolicyError."""
        known = self.ledger.job(name) if name is not None else None
        if known is not None:
            return known
        if wanted.spec is None:
            raise RequestError("a question without a check cannot be answered with evidence", hint=NO_SPEC)
        check_spec(wanted.spec)
        kind = kind_of(wanted.spec)
        if kind.answer_form(wanted.spec) is AnswerForm.WORLD:
            raise RequestError(
                f"the check `{kind.name}` judges what became of a world, and a job has none",
                hint="`assay curriculum try` works on such a task; docs/jobs.md has the checks that jobs take",
            )
        now = self.now()
        job = Job(
            id=name or f"job-{secrets.token_hex(6)}",
            question=wanted.question,
            spec=wanted.spec,
            files=self._checked(wanted.files),
            attempts=wanted.attempts if wanted.attempts is not None else self.settings.jobs.attempts,
            seed=wanted.seed,
            priority=wanted.priority,
            deadline=self._in_time(wanted.deadline),
            budget_seconds=wanted.budget_seconds,
            solvers_done=not solvers,
            state=JobState.QUEUED,
            created=now,
            updated=now,
        )
        return self._queue(job)

    def cancel(self, name: str) -> Job:
        """Calls a job off, also one that is being worked on: its worker sees it within a second. The job as it then is.

        Raises NotThereError, RefusedByPolicyError for one that has ended otherwise."""
        job = job_named(self.ledger, name)
        update = {"state": JobState.CANCELLED, "step": "", "reason": "cancelled by a person", "updated": self.now()}
        ended = self.ledger.put_job(job.model_copy(update=update))
        if ended.state is not JobState.CANCELLED:
            raise RefusedByPolicyError(
                f"{job.id} has ended already: {ended.state.value}", hint=f"see `assay jobs show {job.id}`"
            )
        return ended

    def retry(self, name: str) -> Job:
        """A new job that asks the same with the next seed. A deadline that has passed is left out.

        Raises NotThereError, RefusedByPolicyError for one that has not ended."""
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
        """Has a job tried again that was set aside. Raises NotThereError, RefusedByPolicyError for any other."""
        job = job_named(self.ledger, name)
        if job.state is not JobState.SET_ASIDE:
            raise RefusedByPolicyError(
                f"{job.id} was not set aside: it is {job.state.value}", hint=f"see `assay jobs show {job.id}`"
            )
        self.ledger.leases.revive(work_of(job.id))
        update = {"state": JobState.QUEUED, "reason": "", "updated": self.now()}
        return self.ledger.put_job(job.model_copy(update=update))

    def end_overdue(self) -> float | None:
        """Ends waiting jobs whose time is over. Seconds until the next call; None where nothing has a deadline.

        Of a job that is worked on, the worker sees to it; where that dies, the job waits again."""
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
        refused = job_refused((*sorted(names_of(job.spec)), job.kind), job.attempts, queued, self.policy().jobs)
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
                raise RequestError(f"the file {file.name} is not here", hint="send it first, then the job again")
        return files

    def _in_time(self, deadline: str | None) -> str | None:
        """Gives the deadline in UTC; raises RequestError for one that cannot be kept."""
        if deadline is None:
            return None
        try:
            wanted = datetime.fromisoformat(deadline)
            in_utc = wanted.astimezone(UTC).isoformat(timespec="seconds")
        except (ValueError, OverflowError):  # the last and the first hours of all years have no UTC
            wanted = None
        if wanted is None or wanted.tzinfo is None:
            raise RequestError(
                f"{deadline[:40]!r} is no time with its zone", hint="write it as in 2026-05-01T18:00:00+00:00"
            )
        if wanted <= moment(self.now()):
            raise RequestError("the deadline has passed already", hint="name a later one")
        return in_utc
