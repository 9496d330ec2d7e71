"""Runs the worker until the work is done: again after a crash, with back-off, and not for ever.

What always holds: one worker at a time; every failure is an event with its reason. What a worker had of sandboxes ends
with its connection to the broker. A cycle that fails `attempts` times in a row without progress is marked failed, and
so is a job: the next one gets its turn. A worker that ends with status 2 says that its work cannot be done as asked: it
is not tried again. No job is called running while no worker runs. While something is in the way that passes by itself,
no worker is started and nothing is given up: the work stays as it is.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from appliance.client.messages import WorkerStatus
from appliance.daemon.worker_process import WorkerEnd, WorkerProcess
from appliance.jobs.interrupted import taken_up_again
from appliance.ledger.ledger import Ledger
from appliance.records import Cycle, CycleState, Event, Job, JobState

CANNOT = 2
"""Exit status of a worker whose work cannot be done as asked."""
LEFT = 3
"""Exit status of a worker that left a job which has ended, because its work did not stop."""


@dataclass(frozen=True)
class Patience:
    attempts: int = 4
    """Failures in a row without progress before the work is given up."""
    first_seconds: float = 1.0
    factor: float = 5.0

    def seconds(self, failures: int) -> float:
        """The pause after that many failures in a row: 1, 5, 25 seconds."""
        return float(self.first_seconds * self.factor ** (failures - 1))


class Crew:
    """`run_cycle` and `run_jobs` block; they share one worker and wait for each other. `close` ends both."""

    def __init__(
        self,
        ledger: Ledger,
        process: WorkerProcess,
        now: Callable[[], str],
        patience: Patience,
        in_the_way: Callable[[], str],
    ) -> None:
        """`in_the_way` says what keeps a worker from beginning now and passes by itself; empty when nothing does."""
        self._ledger = ledger
        self._process = process
        self._now = now
        self._patience = patience
        self._in_the_way = in_the_way
        self._turn = threading.Lock()
        self._closing = threading.Event()
        self._state: Literal["idle", "running", "backing_off"] = "idle"
        self._doing = ""
        self._since: str | None = None
        self._failures = 0
        self._last_failure = ""
        self._blamed = ""
        self._waits_for = self._held_up = ""

    @property
    def status(self) -> WorkerStatus:
        return WorkerStatus(
            state=self._state,
            pid=self._process.pid,
            doing=self._doing,
            since=self._since,
            failures=self._failures,
            last_failure=self._last_failure,
            waits_for=self._waits_for,
        )

    def run_cycle(self, cycle: str) -> Cycle:
        """Until the cycle is done or has failed; returns it as it then is: still running after `close`, or while it
        waits for what `waits_for` says."""
        with self._turn:
            self._begin(f"cycle {cycle}")
            try:
                while not self._closing.is_set() and not self._has_to_wait():
                    before = self._cycle_progress(cycle)
                    end = self._run(("cycle", cycle))
                    found = self._found(cycle)
                    if found.state is not CycleState.RUNNING or end.stopped:
                        break
                    reason = end.reason if end.failed else "the worker ended before the cycle did"
                    if self._is_hopeless(end, reason, progress=self._cycle_progress(cycle) != before):
                        self._fail_cycle(found, reason)
                        break
                return self._found(cycle)
            finally:
                self._end()

    def run_jobs(self) -> None:
        """Until no job is queued that can be worked on, or all wait for what `waits_for` says. A job whose worker keeps
        dying is marked failed."""
        with self._turn:
            self._begin("jobs")
            try:
                while not self._closing.is_set() and (job := self.next_job()) is not None and not self._has_to_wait():
                    end = self._run(("jobs",))
                    held = self._put_back()
                    if end.stopped:
                        break
                    left = self.next_job()
                    moved = left is None or left.id != job.id
                    if end.code == LEFT or (not end.failed and moved):
                        self._failures = 0
                        continue
                    reason = end.reason if end.failed else "the worker ended before the job did"
                    guilty = held or (job if left is None else left)
                    if self._is_hopeless(end, reason, progress=guilty.id != self._blamed):
                        self._fail_job(guilty, reason)
                        self._failures = 0
                    self._blamed = guilty.id
            finally:
                self._end()

    @property
    def waits_for(self) -> str:
        """What has to pass before work goes on; empty when nothing has to."""
        return self._waits_for

    def next_job(self) -> Job | None:
        """The one that a worker would take up now."""
        return self._ledger.next_job(with_model=self._ledger.alias("champion") is not None)

    def put_back(self) -> None:
        """Queues again what stayed behind as running, because its end could not be written. No worker is at it."""
        with self._turn:
            self._put_back()

    def _put_back(self) -> Job | None:
        """Queues again what the worker was at when it ended, and returns it; ends it where it was solved already."""
        for job in self._ledger.unended_jobs():
            if job.state is JobState.RUNNING:
                stands = self._ledger.put_job(taken_up_again(job, self._ledger, self._now()))
                return None if stands.state.ended else stands
        return None

    def give_up_cycle(self, cycle: str, reason: str) -> Cycle:
        """Marks it failed without an attempt, because none could begin."""
        with self._turn:
            self._last_failure, self._waits_for = reason, ""
            self._fail_cycle(self._found(cycle), reason)
            return self._found(cycle)

    def give_up_jobs(self, reason: str) -> None:
        """Marks every queued job failed without an attempt, because none could begin."""
        with self._turn:
            self._last_failure, self._waits_for = reason, ""
            while (job := self.next_job()) is not None:
                self._fail_job(job, reason)

    def rest(self) -> None:
        """There is no work: nothing is waited for."""
        with self._turn:
            self._waits_for = self._held_up = ""

    def close(self) -> None:
        """Stops the worker and every wait, and returns when both have ended."""
        self._closing.set()
        self._process.close()
        with self._turn:
            return

    def _run(self, work: Sequence[str]) -> WorkerEnd:
        self._state = "running"
        end = self._process.run(work)
        if end.trouble:
            self._say(end.trouble)
        return end

    def _is_hopeless(self, end: WorkerEnd, reason: str, *, progress: bool) -> bool:
        """Counts and records a failure; waits before the next attempt unless there is none."""
        self._failures = 1 if progress else self._failures + 1
        self._last_failure = reason
        cannot = end.code == CANNOT and not self._in_the_way()
        hopeless = cannot or self._failures >= self._patience.attempts
        pause = 0.0 if hopeless else self._patience.seconds(self._failures)
        self._say(f"{self._doing}: {reason}", failures=float(self._failures), retry_seconds=pause)
        if not hopeless:
            self._state = "backing_off"
            self._closing.wait(pause)
        return hopeless

    def _fail_cycle(self, cycle: Cycle, reason: str) -> None:
        update = {"state": CycleState.FAILED, "failure": reason, "updated": self._now()}
        self._ledger.put_cycle(cycle.model_copy(update=update))
        self._say(f"cycle {cycle.id} was given up: {reason}")

    def _fail_job(self, job: Job, reason: str) -> None:
        update = {"state": JobState.FAILED, "reason": reason, "updated": self._now()}
        self._ledger.put_job(job.model_copy(update=update))
        self._say(f"job {job.id} was given up: {reason}")

    def _found(self, cycle: str) -> Cycle:
        found = self._ledger.cycle(cycle)
        if found is None:
            raise LookupError(f"no cycle {cycle} in the ledger")
        return found

    def _cycle_progress(self, cycle: str) -> tuple[object, ...]:
        """Differs when a worker got anywhere: a phase, a training step, a checkpoint, a rollout."""
        return (
            self._found(cycle).phase,
            len(self._ledger.recorded_steps(cycle)),
            len(self._ledger.checkpoints(cycle=cycle)),
            sorted(self._ledger.rollout_counts(cycle).items()),
        )

    def _has_to_wait(self) -> bool:
        """Whether no worker may begin now; the first time it is said."""
        reason = self._in_the_way()
        if reason and not self._waits_for:
            self._say(f"{self._doing}: nothing is begun before this has passed: {reason}")
        self._waits_for = reason
        self._held_up = self._doing if reason else ""
        return bool(reason)

    def _begin(self, doing: str) -> None:
        """What waited goes on where it was: its failures count."""
        self._doing, self._since = doing, self._now()
        if self._held_up != doing:
            self._failures, self._last_failure, self._blamed = 0, "", ""

    def _end(self) -> None:
        self._state, self._doing, self._since = "idle", "", None

    def _say(self, text: str, **figures: float) -> None:
        self._ledger.put_event(Event(kind="worker", text=text, figures=figures, created=self._now()))
