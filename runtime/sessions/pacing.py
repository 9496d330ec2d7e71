"""Timing of calls with patience: time taken by others does not count, and long calls yield.

Invariants: the limit covers the call's own time, computing or resting, as reported by the host's kernel; a call that
computes for its limit is ended regardless of its clock, and every call ends at its wall-clock limit. This also holds
for a call within its limit. Time before a late first look is unknown and does not count. If the kernel does not report
waits, all wall clock since then counts.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import NamedTuple

from runtime.errors import SandboxError
from runtime.profile import BoxUsage
from runtime.sessions.outcomes import CallOutcome

FIRST_SECONDS = 0.02
"""Delay without an answer before the baseline usage is measured, in seconds: quick calls cost nothing extra."""
GIVES_WAY_SECONDS = 0.1
"""Delay without an answer before a call's sandbox yields to others, in seconds."""
GIVES_WAY_LIMITS = 5.0
"""Duration of yielding, in multiples of the limit. Afterwards it gets its share back, or a full machine would never let
it reach its limit, which also bounds its cost to others."""
GIVES_WAY_MOST_SECONDS = 30.0
"""Longest yielding, in seconds, at any limit: a minute spares others little more than half of one."""
MEASURE_PAUSE_SECONDS = 0.1
"""Shortest interval between usage measurements, in seconds."""
MEASURE_SECONDS = 30.0
"""Timeout of the broker for a measurement, in seconds; it shares the CPUs too."""

Answered = Callable[[BoxUsage | SandboxError], None]


class Pace(NamedTuple):
    """Time limits of one call, in seconds: own time, and wall-clock time, which is at least as long."""

    own: float
    wall: float
    cpus: float


class Spent(NamedTuple):
    """Computation and waits of a call at its last measurement, without its first `FIRST_SECONDS`."""

    computed: float | None = None
    waited: float = 0.0


class FirstLook(NamedTuple):
    """Baseline usage of a sandbox, and by how many seconds its measurement was late."""

    usage: BoxUsage | SandboxError
    unseen: float


class Watched(NamedTuple):
    """Actions on a running call's sandbox: measure, yield and end. None raises or waits."""

    measure: Callable[[Answered], None]
    give_way: Callable[[bool], None]
    end: Callable[[], None]
    """Kills the sandbox; the call is answered then."""


def spent(before: BoxUsage, now: BoxUsage, unseen: float = 0.0) -> Spent:
    """Returns a sandbox's usage between two measurements, the first of which was `unseen` seconds late.

    The wait is the sum of the two longest-waiting threads: a guest's program and the kernel below it are threads that
    wait in turn, and the longest alone is up to a quarter too low (measured). Simultaneous waits count twice; then its
    computation or its wall clock ends it.
    """
    waits = sorted((seconds - before.waits.get(thread, 0.0) for thread, seconds in now.waits.items()), reverse=True)
    waited = sum(max(0.0, seconds) for seconds in waits[:2])
    return Spent(max(0.0, now.cpu_seconds - before.cpu_seconds), waited + unseen)


def is_over(pace: Pace, used: Spent, wall: float) -> bool:
    return wall >= pace.wall or is_used_up(pace, used, wall)


def is_used_up(pace: Pace, used: Spent, wall: float) -> bool:
    """True if the call's own time, without time taken by others, is used up."""
    return own_seconds(pace, used, wall) >= pace.own


def own_seconds(pace: Pace, used: Spent, wall: float) -> float:
    """Returns the own time of a call: wall-clock time without waits, or its computation over its CPUs if longer."""
    return max(wall - used.waited, (used.computed or 0.0) / max(1.0, pace.cpus))


class OwnTime:
    """Tracks a call's own time, without time taken by other sandboxes, by measurements; no caller is blocked."""

    def __init__(self, pace: Pace) -> None:
        self.pace = pace
        self.is_asked = False
        """True while a measurement is pending."""
        self.is_used_up = False
        """True if its own time was used up at the last measurement."""
        self._used = 0.0
        """Own time used at the last measurement, in seconds."""
        self._before: BoxUsage | None = None
        self._unseen = 0.0
        """Lateness of the first measurement, in seconds."""

    def extend(self, seconds: float) -> None:
        """Extends the call's own-time budget (`own_seconds`), counted from the last measurement. Own time already used
        beyond the budget is not deducted."""
        self.pace = self.pace._replace(own=max(self.pace.own, self._used) + seconds)

    @staticmethod
    def first_look(limit: float) -> float:
        """Returns how many seconds after a call's start its sandbox's usage is first measured, as the baseline."""
        return min(GIVES_WAY_SECONDS, limit / 10)

    def left(self, usage: BoxUsage | SandboxError, wall: float) -> float | None:
        """Takes a measurement; returns the seconds until the next one, or None if the call is over. `wall` is the time
        since its start."""
        self.is_asked = False
        used = Spent()
        if isinstance(usage, BoxUsage):
            if self._before is None:
                self._before, self._unseen = usage, max(0.0, wall - self.first_look(self.pace.own))
            used = spent(self._before, usage, self._unseen)
        self.is_used_up, self._used = is_used_up(self.pace, used, wall), own_seconds(self.pace, used, wall)
        if is_over(self.pace, used, wall):
            return None
        return max(MEASURE_PAUSE_SECONDS, min(self.pace.own + used.waited, self.pace.wall) - wall)


def until_answered(answer: Future[CallOutcome], pace: Pace, of: Watched) -> Spent:
    """Waits for a started call's answer, ends its sandbox when the pace is exceeded, and returns the call's usage."""
    begun = time.monotonic()
    used, gives_way, turn = Spent(), False, GIVES_WAY_SECONDS
    first = min(FIRST_SECONDS, pace.own / 10)
    if _is_answered(answer, first):
        return used
    before: Future[FirstLook] = Future()
    of.measure(lambda usage: before.set_result(FirstLook(usage, time.monotonic() - begun - first)))
    while not _wait(answer, begun, pace, used, turn):
        wall = time.monotonic() - begun
        if not gives_way and wall >= turn:
            gives_way, turn = True, min(GIVES_WAY_LIMITS * pace.own, GIVES_WAY_MOST_SECONDS)
            of.give_way(True)
        if gives_way and wall >= turn:
            gives_way, turn = False, math.inf
            of.give_way(False)
        if wall >= min(pace.own, pace.wall):
            used = _measure(before, of)
            if is_over(pace, used, time.monotonic() - begun):
                of.end()
                answer.result()
                return used
    if gives_way:
        of.give_way(False)
    return _measure(before, of)


def _wait(answer: Future[CallOutcome], begun: float, pace: Pace, used: Spent, turn: float) -> bool:
    """Waits for an answer until the next action is due, at most `turn` seconds after the start; True if answered."""
    wall = time.monotonic() - begun
    left = min(pace.own + used.waited, pace.wall) - wall
    seconds = max(MEASURE_PAUSE_SECONDS if wall >= pace.own else 0.0, left)
    return _is_answered(answer, min(seconds, max(0.0, turn - wall)))


def _is_answered(answer: Future[CallOutcome], seconds: float) -> bool:
    try:
        answer.result(timeout=seconds)
    except TimeoutError:
        return False
    return True


def _measure(before: Future[FirstLook], of: Watched) -> Spent:
    """Measures a running call's usage since the baseline; empty if the broker does not report it."""
    now: Future[BoxUsage | SandboxError] = Future()
    of.measure(now.set_result)
    try:
        first, last = before.result(timeout=MEASURE_SECONDS), now.result(timeout=MEASURE_SECONDS)
    except TimeoutError:
        return Spent()
    if isinstance(first.usage, BoxUsage) and isinstance(last, BoxUsage):
        return spent(first.usage, last, first.unseen)
    return Spent()
