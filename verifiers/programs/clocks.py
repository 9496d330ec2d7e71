"""What a submission may take, and the spec's own code for it: one call, and all of them together. Pure.

What always holds: the limits of a test and of all tests are of the submission's own time, in which it computed or
rested; what others took from it counts for the wall clock only, which is bounded, too. A submission that hardly came to
compute before its wall clock was over is not judged.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple, Self

from runtime.errors import InfrastructureError
from runtime.sandbox import CallResult, ExecResult
from verifiers.boxes.own_time import LAST_PATIENCE, PATIENCE

SHARED_SECONDS = 0.5
"""Of one call where programs share a sandbox; what takes longer is done in one of its own, which gives way."""
LEAST_SECONDS = 0.05
LEAST_SPEC_SECONDS = 5.0
"""Of a spec's own code, however little a submission may take: what it imports takes time, too."""
TESTS = "all tests together"
COMPUTES_SHARE = 0.8
"""Of its own time; who computed for less rested, too."""
BUSY_SHARE = 0.05
"""Of its limit; a submission that computed for less, while others had the processors, is not judged."""
HINT = "Ask again when the machine is less busy, or give more seconds."


class Limit(NamedTuple):
    """Of one call, in seconds; `wall` is at least `own`."""

    own: float
    wall: float

    @classmethod
    def of(cls, seconds: float) -> Self:
        return cls(seconds, PATIENCE * seconds)

    @property
    def patience(self) -> float:
        return self.wall / self.own


class SpecTimeError(Exception):
    """The spec's own code came to no end in its time; the message says what took how long."""


class SubmissionClock:
    """Of all calls of one submission, or of what else `name` says."""

    def __init__(self, own: float = math.inf, wall: float = math.inf, name: str = TESTS) -> None:
        """In seconds."""
        self._own, self._wall, self._name = own, wall, name
        self._spent = self._passed = 0.0

    @property
    def left(self) -> float:
        return min(self._own - self._spent, self._wall - self._passed)

    def limit(self, seconds: float) -> Limit | None:
        """For a call that may take so many; None when nothing is left."""
        own = min(seconds, self.left)
        if own < LEAST_SECONDS:
            return None
        return Limit(own, max(own, min(PATIENCE * own, self._wall - self._passed)))

    def took(self, result: CallResult | ExecResult) -> None:
        self._spent += max(0.0, result.seconds - result.waited)
        self._passed += result.seconds

    def settle(self) -> bool:
        """Says whether the limit was passed, once all that ran is counted."""
        return self.left <= 0

    def opened(self, place: object, cpu_seconds: Callable[[], float]) -> None:
        """Is told of a sandbox in which all else will run."""

    def closing(self, place: object) -> None:
        """Is told that it is closed next."""

    def over(self) -> str:
        """Why nothing is left."""
        if self._own - self._spent <= self._wall - self._passed:
            return f"{self._name} took more than {self._own:g} s"
        return f"{self._name} did not end within {self._wall:g} s on a busy machine"


class NotMeasuredError(Exception):
    """All tests together may have taken too long, by a clock that also counts what others took from them."""


class CandidateClock(SubmissionClock):
    """Of all calls of one submission, or of a spec's own code. Calls in sessions among others, and very quick ones, are
    not measured one by one: while their wall clock fits into the limit, so does what they computed. Where it does not
    fit, nothing is concluded from it: all is asked once more in sandboxes whose processor time is read (`measured`),
    and that decides."""

    def __init__(self, own: float, *, measured: bool = False, patience: float = PATIENCE, name: str = TESTS) -> None:
        super().__init__(own, patience * own, name)
        self._measured = measured
        self._quick = 0.0
        """Wall clock of the calls that were not measured one by one."""
        self._known = 0.0
        """Processor time of those that were, in places that are read."""
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
        """Says so as well. Raises NotMeasuredError where that cannot be known."""
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
    """For the spec's own code, where a submission may take so many seconds of its own. `measured` as of places."""
    seconds = max(own, LEAST_SPEC_SECONDS)
    return CandidateClock(seconds, measured=measured, patience=LAST_PATIENCE, name="the spec's own code")


def late(result: CallResult | ExecResult, limit: Limit) -> str:
    """How a call that was stopped went past its limit. Raises InfrastructureError for one kept from computing."""
    if result.computed is not None and result.computed >= COMPUTES_SHARE * limit.own:
        return f"computed for more than {limit.own:.3g} s"
    if result.computed is None or result.seconds - result.waited >= limit.own:
        return f"took more than {limit.own:.3g} s{'' if result.computed is None else ', some of it at rest'}"
    if result.computed < BUSY_SHARE * limit.own:
        raise InfrastructureError(f"the program was kept from computing for {result.seconds:.0f} s", hint=HINT)
    return f"did not end within {limit.wall:.3g} s on a busy machine"
