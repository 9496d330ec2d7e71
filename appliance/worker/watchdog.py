"""Watchdog of a running job: stops it when required and keeps its record current.

Invariants: cancellation, deadline and budget are noticed within about a second, even if the work is blocked. If the
work has not stopped a few seconds later, the process exits and the job is recorded as ended. The time spent is recorded
to within a second, so a budget survives every kill.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Self

from appliance.jobs.lifecycle import GAVE_WAY, overdue
from appliance.ledger.ledger import Ledger
from appliance.records.jobs import Job, JobState

POLL_SECONDS = 1.0
GRACE_SECONDS = 5.0
"""Seconds for the work to stop by itself."""


class JobWatchdog:
    """Context manager around the work on one job, with a thread of its own. `clock` counts seconds and `now` returns
    UTC in ISO 8601. `leave` exits this process immediately; `withdrawn` returns the reason that the weights may not be
    used any more; `urgent` is true if a more urgent job waits, which stops the work immediately or sets `gives_way`."""

    def __init__(
        self,
        job: Job,
        ledger: Ledger,
        *,
        now: Callable[[], str],
        clock: Callable[[], float],
        leave: Callable[[], object],
        withdrawn: Callable[[], str] = lambda: "",
        urgent: Callable[[], bool] = lambda: False,
        stops_for_urgent: bool = False,
        poll_seconds: float = POLL_SECONDS,
        grace_seconds: float = GRACE_SECONDS,
    ) -> None:
        self._job = job
        self._ledger = ledger
        self._now = now
        self._clock = clock
        self._leave = leave
        self._withdrawn = withdrawn
        self._urgent, self._stops_for_urgent = urgent, stops_for_urgent
        self.gives_way = False
        """True if a more urgent job waits."""
        self._poll_seconds = poll_seconds
        self._grace_seconds = grace_seconds
        self._started = clock()
        self._step, self._tries = "", 0
        self._reason = ""
        self._again = False
        self._since = 0.0
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="job-watchdog", daemon=True)

    def __enter__(self) -> Self:
        self._poll()
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._closing.set()
        self._thread.join()

    def stop_reason(self) -> str:
        """Returns the reason to stop work on the job, as a sentence; empty while it may continue."""
        return self._reason

    @property
    def again(self) -> bool:
        """True if the job must start again: with other weights, or after a more urgent job."""
        return self._again

    def report(self, step: str, tries_done: int) -> None:
        """Sets the job's current step and its number of finished attempts."""
        self._step, self._tries = step, tries_done

    @property
    def spent(self) -> float:
        """Seconds of work on the job, including that of earlier processes."""
        return self._job.spent_seconds + self._clock() - self._started

    def _watch(self) -> None:
        while not self._closing.wait(self._poll_seconds):
            self._poll()
            if self._reason and self._clock() - self._since > self._grace_seconds:
                self._put_ended()
                self._leave()
                return

    def _poll(self) -> None:
        update = {
            "state": JobState.RUNNING,
            "step": self._step,
            "tries_done": self._tries,
            "reason": "",
            "spent_seconds": round(self.spent, 1),
            "updated": self._now(),
        }
        stored = self._ledger.put_job(self._job.model_copy(update=update))
        if self._reason:
            return
        self._reason = self._reason_to_stop(stored)
        self._since = self._clock()

    def _reason_to_stop(self, stored: Job) -> str:
        if stored.state.ended:
            return stored.reason or stored.state.value
        gone = self._withdrawn()
        if gone:
            self._again = True
            return gone
        self.gives_way = self._urgent()
        if self.gives_way and self._stops_for_urgent:
            self._again = True
            return GAVE_WAY
        return overdue(stored, self._now())

    def _put_ended(self) -> None:
        """Records a job as unsolved, or queued again, because its work did not stop when required."""
        state = JobState.QUEUED if self._again else JobState.UNSOLVED
        update = {"state": state, "step": "", "reason": self._reason, "spent_seconds": round(self.spent, 1)}
        self._ledger.put_job(self._job.model_copy(update={**update, "tries_done": self._tries, "updated": self._now()}))
