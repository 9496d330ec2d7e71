"""Time limits for a submission and for the spec's own code: per call and in total. Pure.

Invariants: the limits of a test and of all tests count the submission's own time, computing or idle; time taken by
other processes counts only towards wall clock, which is limited too. A submission that hardly got to compute before its
wall clock ran out is not judged.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple, Self

from runtime.errors import InfrastructureError
from runtime.sandbox import CallResult, ExecResult
from verifiers.boxes.own_time import LAST_PATIENCE, PATIENCE

SHARED_SECONDS = 0.5
"""Time limit of a call in a shared sandbox, in seconds; longer calls move to an own sandbox, at lower priority."""
LEAST_SECONDS = 0.05
LEAST_SPEC_SECONDS = 5.0
"""Minimum time limit of a spec's own code, in seconds: imports take time too."""
TESTS = "all tests together"
COMPUTES_SHARE = 0.8
"""Share of its own time below which a submission was also idle."""
BUSY_SHARE = 0.05
"""Share of its limit below which a submission that was starved by other processes is not judged."""
HINT = "Retry when the machine is less busy, or allow more seconds."


class Limit(NamedTuple):
    """Time limit of one call, in seconds; `wall` is at least `own`."""

    own: float
    wall: float

    @classmethod
    def of(cls, seconds: float) -> Self:
        return cls(seconds, PATIENCE * seconds)

    @property
    def patience(self) -> float:
        return self.wall / self.own


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
        return min(self._own - self._spent, self._wall - self._passed)

    def limit(self, seconds: float) -> Limit | None:
        """Returns the time limit of a call that may take up to `seconds`; None if no time is left."""
        own = min(seconds, self.left)
        if own < LEAST_SECONDS:
            return None
        return Limit(own, max(own, min(PATIENCE * own, self._wall - self._passed)))

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
        if self._own - self._spent <= self._wall - self._passed:
            return f"{self._name} took more than {self._own:g} s"
        return f"{self._name} did not end within {self._wall:g} s on a busy machine"


class NotMeasuredError(Exception):
    """All tests together may have exceeded their time, by a clock that includes time taken by other processes."""


class CandidateClock(SubmissionClock):
    """Time account of a submission or of a spec's own code; measures CPU time only if the verdict depends on it.

    Calls in shared sessions, and very quick ones, are not measured individually: while their wall clock fits into the
    limit, so does their CPU time. If it does not fit, nothing follows; everything is repeated in sandboxes whose CPU
    time is read (`measured`), and that decides.
    """

    def __init__(self, own: float, *, measured: bool = False, patience: float = PATIENCE, name: str = TESTS) -> None:
        super().__init__(own, patience * own, name)
        self._measured = measured
        self._quick = 0.0
        """Wall clock of calls without their own CPU measurement, in seconds."""
        self._known = 0.0
        """CPU time of measured calls, in sandboxes whose total is read, in seconds."""
        self._read: dict[object, tuple[Callable[[], float], float]] = {}
        self._closed = 0.0

    def limit(self, seconds: float) -> Limit | None:
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
        if self._spent + self._quick <= self._own - LEAST_SECONDS or self._passed >= self._wall:
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
    return CandidateClock(seconds, measured=measured, patience=LAST_PATIENCE, name="the spec's own code")


def late(result: CallResult | ExecResult, limit: Limit) -> str:
    """Describes how a stopped call exceeded its time limit. Raises InfrastructureError if it got too little CPU."""
    if result.computed is not None and result.computed >= COMPUTES_SHARE * limit.own:
        return f"computed for more than {limit.own:.3g} s"
    if result.computed is None or result.seconds - result.waited >= limit.own:
        return f"took more than {limit.own:.3g} s{'' if result.computed is None else ', partly idle'}"
    if result.computed < BUSY_SHARE * limit.own:
        raise InfrastructureError(f"the program was starved of CPU for {result.seconds:.0f} s", hint=HINT)
    return f"did not end within {limit.wall:.3g} s on a busy machine"
