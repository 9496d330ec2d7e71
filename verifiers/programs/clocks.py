"""Time limits for a submission and for the spec's own code: per call and in total. Pure.

Invariants: the limits of a test and of all tests count the submission's own time, computing or idle, and only they
decide anything. Time taken by other processes counts towards wall clock, which is limited too: at its end the machine
was too busy to judge (StarvedError), regardless of the submission.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from runtime.sandbox import CallResult, ExecResult
from verifiers.boxes.late import starved
from verifiers.boxes.own_time import LAST_PATIENCE

SHARED_SECONDS = 0.5
"""Time limit of a call in a shared sandbox, in seconds; longer calls move to an own sandbox, at lower priority."""
LEAST_SECONDS = 0.05
LEAST_SPEC_SECONDS = 5.0
"""Minimum time limit of a spec's own code, in seconds: imports take time too."""
TESTS = "all tests together"


class SpecTimeError(Exception):
    """The spec's own code exceeded its time; the message names the code and the time."""


class SubmissionClock:
    """Time account for all calls of one submission, or of the code that `name` describes."""

    def __init__(self, own: float = math.inf, wall: float = math.inf, name: str = TESTS) -> None:
        """Starts a time account. `own` (computing or idle) and `wall` are limits in seconds; `name` is the code's."""
        self._own, self._wall, self._name = own, wall, name
        self._spent = self._passed = 0.0

    @property
    def left(self) -> float:
        return self._own - self._spent

    def limit(self, seconds: float) -> float | None:
        """Returns the limit of a call's own time, at most `seconds`; None if no time is left. Raises
        StarvedError if other processes used up the wall clock."""
        own = min(seconds, self.left)
        if own < LEAST_SECONDS:
            return None
        if self._passed >= self._wall:
            raise starved(self._name, self._passed)
        return own

    def took(self, result: CallResult | ExecResult) -> None:
        self._spent += max(0.0, result.seconds - result.waited)
        self._passed += result.seconds

    def settle(self) -> bool:
        """Returns True if the total limit is exceeded, once everything that ran is counted."""
        return self.left <= 0

    def opened(self, place: object, cpu_seconds: Callable[[], float]) -> None:
        """Registers a sandbox in which the following calls run; ignored by this clock."""

    def closing(self, place: object) -> None:
        """Records that a sandbox is about to be closed; ignored by this clock."""

    def over(self) -> str:
        """Returns the reason why no time is left, as a sentence."""
        return f"{self._name} took more than {self._own:g} s"


class NotMeasuredError(Exception):
    """All tests together may have exceeded their time, by a clock that includes time taken by other processes."""


class CandidateClock(SubmissionClock):
    """Time account of a submission or of a spec's own code; measures CPU time only if the verdict depends on it.

    Calls in shared sessions, and very quick ones, are not measured individually: while their wall clock fits into the
    limit, so does their CPU time. If it does not fit, nothing follows; everything is repeated in sandboxes whose CPU
    time is read (`measured`), and that decides.
    """

    def __init__(self, own: float, *, measured: bool = False, name: str = TESTS) -> None:
        super().__init__(own, LAST_PATIENCE * own, name)
        self._measured = measured
        self._quick = 0.0
        """Wall clock of calls without their own CPU measurement, in seconds."""
        self._known = 0.0
        """CPU time of measured calls, in sandboxes whose total is read, in seconds."""
        self._read: dict[object, tuple[Callable[[], float], float]] = {}
        self._closed = 0.0

    def limit(self, seconds: float) -> float | None:
        self.settle()
        return super().limit(seconds)

    def took(self, result: CallResult | ExecResult) -> None:
        if result.computed is None:
            self._quick += result.seconds
            self._passed += result.seconds
        else:
            self._known += result.computed
            super().took(result)

    def opened(self, place: object, cpu_seconds: Callable[[], float]) -> None:
        if self._measured:
            self._read[place] = (cpu_seconds, cpu_seconds())

    def closing(self, place: object) -> None:
        cpu_seconds, before = self._read.pop(place, (lambda: 0.0, 0.0))
        self._closed += max(0.0, cpu_seconds() - before)

    def settle(self) -> bool:
        """Returns True if the total limit is exceeded. Raises NotMeasuredError if that cannot be known."""
        if self._spent + self._quick <= self._own - LEAST_SECONDS:
            return self.left <= 0
        if not self._measured:
            raise NotMeasuredError
        computed = self._closed + sum(max(0.0, now() - before) for now, before in self._read.values()) - self._known
        self._spent += min(self._quick, max(0.0, computed))
        self._known += max(0.0, computed)
        self._quick = 0.0
        return self.left <= 0


def spec_clock(own: float, *, measured: bool = False) -> SubmissionClock:
    """Returns a clock for the spec's own code, given the submission's limit. `measured` as in CandidateClock."""
    seconds = max(own, LEAST_SPEC_SECONDS)
    return CandidateClock(seconds, measured=measured, name="the spec's own code")
