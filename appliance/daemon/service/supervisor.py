"""Runs workers until the work is done, retrying crashes with back-off up to a limit.

Invariants: one worker at a time; every failure is an event with its reason. A worker's sandboxes end with its broker
connection, its leases with its process. Work with `attempts` consecutive infrastructure deaths without progress is
parked, a cycle as well as a job: the next work gets its turn, and a person may retry it. Exit status 2 means that the
work cannot be done as requested: it fails, but a cycle with recorded training steps is parked, because the cause may
be mended. No job is "running" without a worker. While a temporary obstacle blocks work, no worker starts and nothing is
given up; a permanent one ends it without an attempt. Configuration faults count as nobody's failure: the cycle waits
until they are fixed.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from appliance.client.status import WorkerStatus
from appliance.daemon.contract import EventLog
from appliance.daemon.processes.worker_process import WorkerEnd, WorkerProcess
from appliance.daemon.service.decision import next_phase
from appliance.daemon.service.readiness import BlockedReason, Readiness
from appliance.daemon.views.ledger_views import unfinished_cycle
from appliance.jobs.lifecycle import taken_up_again
from appliance.ledger.leases import Holder
from appliance.ledger.sqlite import SqliteLedger
from appliance.promotion.evidence import CANDIDATE
from appliance.records.cycles import Cycle, CycleState
from appliance.records.jobs import Job, JobPart, JobState, work_of
from appliance.system.process_state import CANNOT, LEFT, MISCONFIGURED

JOBS = "jobs"


@dataclass(frozen=True)
class RetryPolicy:
    attempts: int = 3
    """Consecutive failures without progress before the work is parked."""
    first_seconds: float = 5.0
    factor: float = 5.0

    def seconds(self, failures: int) -> float:
        """Returns the seconds before failed work is retried: none after the first failure, then growing by `factor`."""
        return 0.0 if failures < 2 else float(self.first_seconds * self.factor ** (failures - 2))


@dataclass
class WorkerSupervisor:
    """Runs cycles and jobs with one worker, retrying its crashes. `run_cycle` and `run_jobs` block and exclude each
    other; `close` ends both."""

    ledger: SqliteLedger
    process: WorkerProcess
    events: EventLog
    now: Callable[[], str]
    retry: RetryPolicy
    readiness: Readiness
    """Checks what prevents a worker from starting now."""
    leave_seconds: float = 60.0
    """Time limit for a worker to leave a cancelled job, in seconds; it takes a few unless the worker is stuck."""
    on_set_aside: Callable[[Job], object] = lambda job: None

    def __post_init__(self) -> None:
        self.process.stuck = self._left_behind
        self.held: Callable[[str], str] = lambda cycle: ""
        """Returns why no worker may begin on a cycle now; empty if one may. See `appliance.daemon.nights.runner`."""
        self._at, self._cancelled_at = "", 0.0
        self._turn = threading.Lock()
        self._closing = threading.Event()
        self._state: Literal["idle", "running", "backing_off"] = "idle"
        self._since: str | None = None
        self._failures = 0
        self._doing = self._last_failure = ""
        self._holder: Holder | None = None
        self._part: JobPart = "any"
        self._pausing = False
        self._waits: dict[str, str] = {}

    @property
    def waits_for(self) -> str:
        """Obstacles that must pass before work continues; empty if none."""
        return "; ".join(dict.fromkeys(self._waits.copy().values()))

    @property
    def jobs_wait_for(self) -> str:
        """Obstacles that must pass before jobs continue; empty if none."""
        return self._waits.get(JOBS) or self._waits.get("", "")

    @property
    def status(self) -> WorkerStatus:
        return WorkerStatus(
            state=self._state,
            pid=self.process.pid,
            doing=self._doing,
            since=self._since,
            failures=self._failures,
            last_failure=self._last_failure,
            waits_for=self.waits_for,
        )

    def run_cycle(self, cycle: str) -> Cycle:
        """Runs a worker for each phase of the cycle until it can be decided or has failed; returns the cycle.

        It stays "running" after `close`, and while it waits for `waits_for`.
        """
        with self._turn:
            self._waits.pop(JOBS, None)
            self._begin(_doing(cycle))
            try:
                if reason := self._hopeless_from_the_start(self._blocked(cycle)):
                    self._fail_cycle(self._found(cycle), reason)
                    return self._found(cycle)
                while (phase := next_phase(self._found(cycle), self.ledger)) != "decide":
                    if self._closing.is_set() or self.held(cycle) or self._has_to_wait(self._blocked(cycle)):
                        break
                    if self.ledger.leases.deaths(work_of_cycle(cycle)) >= self.retry.attempts:
                        down = "the machine went down while it was worked on"
                        self._set_cycle_aside(self._found(cycle), _aside(self.retry.attempts, down))
                        break
                    before = self._cycle_progress(cycle)
                    end = self._run((phase, cycle), Holder(f"the worker of {cycle}"), work_of_cycle(cycle))
                    found = self._found(cycle)
                    if found.state is not CycleState.RUNNING or end.stopped:
                        break
                    if next_phase(found, self.ledger) != phase and not end.failed:
                        self._failures = 0
                        self.ledger.leases.revive(work_of_cycle(cycle))
                        continue
                    reason = end.reason if end.failed else "the worker ended before its work did"
                    if end.code == MISCONFIGURED:
                        self.readiness.refuse_model(found, end.last_line)
                    progress = self._cycle_progress(cycle) != before
                    match self._judge(end, reason, self._blocked(cycle), work_of_cycle(cycle), progress=progress):
                        case "fail":
                            self._fail_cycle(found, reason)
                            break
                        case "set aside":
                            self._set_cycle_aside(found, _aside(self.retry.attempts, reason))
                            break
                return self._found(cycle)
            finally:
                self._end()

    def run_jobs(self, part: JobPart = "any") -> None:
        """Runs workers on queued jobs until none can be worked on, or all wait for `waits_for`. A worker of a single
        part stays for further jobs. A job whose worker keeps dying is parked."""
        with self._turn:
            self._begin(JOBS)
            self._part = part
            try:
                while not self._closing.is_set() and (job := self.next_job(part)) is not None:
                    blocked = self.readiness.jobs_blocked()
                    if reason := self._hopeless_from_the_start(blocked):
                        self._fail_job(job, reason)
                        continue
                    if self._has_to_wait(blocked):
                        break
                    if self.ledger.leases.deaths(work_of(job.id)) >= self.retry.attempts:
                        self._set_job_aside(job, "the machine went down while it was worked on")
                        continue
                    if not self._run_for_jobs(job, part):
                        break
            finally:
                self._end()

    def _run_for_jobs(self, job: Job, part: JobPart) -> bool:
        """Runs one worker because of `job`, and requeues, fails or parks the job it left. True if another worker may
        start."""
        holder = Holder("the worker of jobs", self._may_claim_under(self.process.policy()), self._may_wait(part))
        end = self._run(("jobs", part), holder)
        held = self._requeue_running()
        if end.stopped:
            return False
        left = self.next_job(part)
        moved = left is None or left.id != job.id
        if end.code == LEFT or holder.sent_away or (moved and (not end.failed or end.stuck)):
            self._failures = 0
            return True
        reason = end.reason if end.failed else "the worker ended before the job did"
        guilty = held or (None if moved and holder.last else job)
        if guilty is None:  # it died between two jobs
            self.events.add("worker", f"{self._doing}: {reason}")
            self._last_failure = reason
            return True
        match self._judge(end, reason, self.readiness.jobs_blocked(), work_of(guilty.id), progress=False):
            case "fail":
                self._fail_job(guilty, reason)
                self._failures = 0
            case "set aside":
                self._set_job_aside(guilty, reason)
                self._failures = 0
        return True

    def next_job(self, part: JobPart = "any") -> Job | None:
        """Returns the queued job that a worker would claim now, or None."""
        if self.ledger.alias("champion") is None:
            return None if part == "model" else self.ledger.next_job(part="solvers")
        return self.ledger.next_job(part=part)

    def _may_claim_under(self, policy: str) -> Callable[[], bool]:
        """Returns a predicate, True while a worker may claim jobs. Nothing may block them, and the policy that it
        started under must be in force."""
        return lambda: (
            not self._closing.is_set() and self.process.policy() == policy and self.readiness.jobs_blocked() is None
        )

    def _may_wait(self, part: JobPart) -> Callable[[], bool]:
        """Returns a predicate, True while a worker without jobs may wait for more; with a model, not while a cycle is
        unfinished."""
        return lambda: part != "model" or unfinished_cycle(self.ledger) is None

    def requeue_running(self) -> None:
        """Requeues jobs left as running because their end could not be written; no worker has them."""
        with self._turn:
            self._requeue_running()

    def hold(self, reason: str) -> None:
        """Makes all work wait for an obstacle from outside, described by `reason`."""
        self._waits[""] = reason

    def clear_wait(self) -> None:
        """Forgets all obstacles that work waited for, because there is no work."""
        with self._turn:
            self._waits.clear()

    def cancel_cycle(self, cycle: Cycle) -> None:
        """Records the cycle as cancelled immediately, and ends its worker within the usual grace."""
        self._end_cycle(cycle, CycleState.CANCELLED, "cancelled by a person")
        if self._doing == _doing(cycle.id):
            threading.Thread(target=self.process.stop, name="cancel", daemon=True).start()

    def works_on(self, cycle: str) -> bool:
        """True if a worker process runs for that cycle, or is about to."""
        return self._doing == _doing(cycle)

    def pause_cycle(self, cycle: str) -> None:
        """Starts ending the cycle's worker within the usual grace, without waiting; the cycle stays unfinished."""
        if self.works_on(cycle):
            threading.Thread(target=self.process.stop, name="pause", daemon=True).start()

    def close(self) -> None:
        """Stops the worker and every wait of its supervisor, and returns when both have ended."""
        self._closing.set()
        self.process.close()
        with self._turn:
            return

    def _requeue_running(self) -> Job | None:
        """Requeues the job that the worker had when it ended, and returns it; None if it was already solved."""
        for job in self.ledger.unended_jobs():
            if job.state is JobState.RUNNING and self._is_ours(job):
                requeued = self.ledger.put_job(taken_up_again(job, self.ledger, self.now()))
                return None if requeued.state.ended else requeued
        return None

    def _is_ours(self, job: Job) -> bool:
        return self._part == "any" or job.solvers_done == (self._part == "model")

    def _run(self, work: Sequence[str], holder: Holder, leased: str = "") -> WorkerEnd:
        self._state, self._at, self._holder, self._pausing = "running", "", holder, False
        if leased:
            self.ledger.leases.take(leased, holder)
        end = self.process.run(work, holder)
        self._holder = None
        for said in filter(None, (end.trouble, end.stuck)):
            self.events.add("worker", said)
        self._last_failure = end.stuck or self._last_failure
        return end

    def _left_behind(self) -> str:
        """Returns why the worker must be killed: an overdue lease, or a cancelled job that it did not leave. Empty if
        it is not stuck."""
        self._pause_if_short()
        if self._holder is not None and (work := self.ledger.leases.overdue(self._holder)):
            return f"the worker did not renew its lease of {work} in {self.ledger.leases.seconds:g} s"
        mine = (job.id for job in self.ledger.unended_jobs() if job.state is JobState.RUNNING and self._is_ours(job))
        running = next(mine, "")
        if running or not self._at:
            self._at, self._cancelled_at = running, 0.0
            return ""
        known = self.ledger.job(self._at)
        if known is None or known.state is not JobState.CANCELLED:
            self._at = ""
            return ""
        self._cancelled_at = self._cancelled_at or time.monotonic()
        late = time.monotonic() - self._cancelled_at > self.leave_seconds
        return f"the worker did not leave job {self._at}, which was cancelled" if late else ""

    def _pause_if_short(self) -> None:
        """Stops the worker when disk or memory run short: its work waits, without counting a failure."""
        if self._pausing or not (reason := self.readiness.watch.pause_reason()):
            return
        self._pausing = True
        self.events.add("worker", f"{self._doing}: paused: {reason}")
        threading.Thread(target=self.process.stop, name="pause", daemon=True).start()

    def _blocked(self, cycle: str) -> BlockedReason | None:
        return self.readiness.blocked(self._found(cycle))

    def _hopeless_from_the_start(self, blocked: BlockedReason | None) -> str:
        """Returns the text of a permanent obstacle, because of which no worker may start; empty for none or a temporary
        one."""
        if blocked is None or blocked.passes:
            return ""
        self._last_failure = blocked.text
        self._waits.clear()
        return blocked.text

    def _judge(
        self, end: WorkerEnd, reason: str, blocked: BlockedReason | None, work: str, *, progress: bool
    ) -> Literal["again", "fail", "set aside"]:
        """Decides after a worker's death whether its work is retried, fails or is parked, and records that. Waits
        before a retry. Faults of configuration or disk do not count."""
        if blocked is not None and blocked.blameless:
            return "again"
        self._failures = self.ledger.leases.died(work, progress=progress)
        self._last_failure = reason
        cannot = not blocked.passes if blocked is not None else end.code in (CANNOT, MISCONFIGURED)
        hopeless = cannot or self._failures >= self.retry.attempts
        pause = 0.0 if hopeless else self.retry.seconds(self._failures)
        text = f"{self._doing}: {reason}"
        self.events.add("worker", text, failures=float(self._failures), retry_seconds=pause)
        if hopeless:
            return "fail" if cannot else "set aside"
        self._state = "backing_off"
        self._closing.wait(pause)
        return "again"

    def _set_cycle_aside(self, cycle: Cycle, reason: str) -> None:
        said = f"{reason}; `assay cycle resume {cycle.id}` retries it"
        aside = {"state": CycleState.SET_ASIDE, "failure": said, "updated": self.now()}
        self.ledger.put_cycle(cycle.model_copy(update=aside))
        self.events.add("worker", f"cycle {cycle.id} was {said}")

    def _set_job_aside(self, job: Job, reason: str) -> None:
        said = f"{_aside(self.retry.attempts, reason)}; `assay jobs resume {job.id}` retries it"
        aside = {"state": JobState.SET_ASIDE, "step": "", "reason": said, "updated": self.now()}
        self.on_set_aside(self.ledger.put_job(job.model_copy(update=aside)))
        self.events.add("worker", f"job {job.id} was {said}")

    def _fail_cycle(self, cycle: Cycle, reason: str) -> None:
        if self.ledger.recorded_steps(cycle.id):
            self._set_cycle_aside(cycle, f"parked with its training steps: {reason}")
            return
        self._end_cycle(cycle, CycleState.FAILED, reason)
        self.events.add("worker", f"cycle {cycle.id} failed: {reason}")

    def _end_cycle(self, cycle: Cycle, state: CycleState, reason: str) -> None:
        """Records the end of a cycle without a decision; its undecided candidate loses the alias."""
        self.ledger.put_cycle(cycle.model_copy(update={"state": state, "failure": reason, "updated": self.now()}))
        trained = cycle.plan.get("candidate")
        if (
            trained is not None
            and self.ledger.alias(CANDIDATE) == trained
            and not self.ledger.decisions(candidate=trained, limit=1)
        ):
            self.ledger.set_aliases({CANDIDATE: None}, f"cycle {cycle.id}: {reason}", self.now())

    def _fail_job(self, job: Job, reason: str) -> None:
        update = {"state": JobState.FAILED, "reason": reason, "updated": self.now()}
        self.ledger.put_job(job.model_copy(update=update))
        self.events.add("worker", f"job {job.id} failed: {reason}")

    def _found(self, cycle: str) -> Cycle:
        found = self.ledger.cycle(cycle)
        if found is None:
            raise LookupError(f"no cycle {cycle} in the ledger")
        return found

    def _cycle_progress(self, cycle: str) -> tuple[object, ...]:
        """Returns a value that changes with any progress of the cycle: a phase, a training step, a checkpoint, a
        rollout."""
        return (
            self._found(cycle).phase,
            len(self.ledger.recorded_steps(cycle)),
            len(self.ledger.checkpoints(cycle=cycle)),
            sorted(self.ledger.rollout_counts(cycle).items()),
        )

    def _has_to_wait(self, blocked: BlockedReason | None) -> bool:
        """True if a temporary obstacle blocks the current work; the first time this is an event."""
        self._waits.pop("", None)
        if blocked is None or not blocked.passes:
            self._waits.pop(self._doing, None)
            return False
        if self._doing not in self._waits:
            self.events.add("worker", f"{self._doing}: waits for this to pass: {blocked.text}")
        self._waits[self._doing] = blocked.text
        return True

    def _begin(self, doing: str) -> None:
        """Notes which cycle or jobs are being worked on; the failures of work that waited still count."""
        self._doing, self._since = doing, self.now()
        if doing not in self._waits:
            self._failures, self._last_failure = 0, ""

    def _end(self) -> None:
        self._state, self._doing, self._since = "idle", "", None


def _doing(cycle: str) -> str:
    return f"cycle {cycle}"


def work_of_cycle(cycle: str) -> str:
    """Returns the name under which a cycle's lease is recorded."""
    return f"cycle {cycle}"


def _aside(deaths: int, reason: str) -> str:
    return f"parked after {deaths} consecutive deaths: {reason}"
