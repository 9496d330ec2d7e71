"""Waits for a call with patience: what others took from it is not counted, and what takes long gives way.

What always holds: the limit is of the call's own time, in which it computed or rested, as the host's kernel tells it;
a call that computes for its limit is ended whatever its clock says, and every call is ended at the end of its wall
clock. What it says of a call holds for one within its limit as well. What went before a first look that came late is
not known and does not count. Where the kernel does not say who waited, all wall clock since then counts.
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
"""Without an answer, after which it is found out what the sandbox has used before: what is quick costs nothing more."""
GIVES_WAY_SECONDS = 0.1
"""Without an answer, after which a call's sandbox gives way to others."""
GIVES_WAY_LIMITS = 5.0
"""So many limits of wall clock long. Then it has its share again, or a full machine would never let it come to its
limit, which is also the most that it can cost others."""
GIVES_WAY_MOST_SECONDS = 30.0
"""And no longer than that, whatever its limit: others are not spared much more by a minute than by a half."""
MEASURE_PAUSE_SECONDS = 0.1
"""Between looks at what a call has used, at least."""
MEASURE_SECONDS = 30.0
"""How long the broker may take to say it; it has to share the processors, too."""

Answered = Callable[[BoxUsage | SandboxError], None]


class Pace(NamedTuple):
    """Holds the limits of one call, in seconds; `wall` is at least `own`."""

    own: float
    wall: float
    cpus: float


class Spent(NamedTuple):
    """Holds what a call had used when it was last measured, but for its first `FIRST_SECONDS`."""

    computed: float | None = None
    waited: float = 0.0


class FirstLook(NamedTuple):
    """Is what a sandbox had used when its call was first looked at, and how many seconds late that came."""

    usage: BoxUsage | SandboxError
    unseen: float


class Watched(NamedTuple):
    """Is what can be done about the sandbox of the call. None of it raises or waits."""

    measure: Callable[[Answered], None]
    give_way: Callable[[bool], None]
    end: Callable[[], None]
    """Kills it; the call is answered then."""


def spent(before: BoxUsage, now: BoxUsage, unseen: float = 0.0) -> Spent:
    """Takes what was used between two measurements, the first of which came `unseen` seconds late. It waited as long as
    the two of its threads that waited longest: a guest's program and the kernel below it are threads that wait in turn,
    and the longest alone is up to a quarter too little (measured). Where these waits are one at the same time, they are
    counted twice; then what it computes ends it, or its wall clock."""
    waits = sorted((seconds - before.waits.get(thread, 0.0) for thread, seconds in now.waits.items()), reverse=True)
    waited = sum(max(0.0, seconds) for seconds in waits[:2])
    return Spent(max(0.0, now.cpu_seconds - before.cpu_seconds), waited + unseen)


def is_over(pace: Pace, used: Spent, wall: float) -> bool:
    return wall >= pace.wall or is_used_up(pace, used, wall)


def is_used_up(pace: Pace, used: Spent, wall: float) -> bool:
    """Says whether the time is over that is a call's own: others did not take it."""
    return own_seconds(pace, used, wall) >= pace.own


def own_seconds(pace: Pace, used: Spent, wall: float) -> float:
    """Gives how much of its own time a call has used: by its clock, or by what it computed on all its processors."""
    return max(wall - used.waited, (used.computed or 0.0) / max(1.0, pace.cpus))


class OwnTime:
    """Says of a call that nobody waits for how long it may go on, from looks at what its sandbox has used."""

    def __init__(self, pace: Pace) -> None:
        self.pace = pace
        self.is_asked = False
        """Whether a look is under way."""
        self.is_used_up = False
        """Whether its own time was over at the last look."""
        self._used = 0.0
        """Seconds of its own time that it had used at the last look."""
        self._before: BoxUsage | None = None
        self._unseen = 0.0
        """Seconds by which the first look came late."""

    def extend(self, seconds: float) -> None:
        """Gives it so much more of its own time, from the last look on: a look may have come late, and what it used
        beyond its limit until then is not taken from what it is given now."""
        self.pace = self.pace._replace(own=max(self.pace.own, self._used) + seconds)

    @staticmethod
    def first_look(limit: float) -> float:
        """Seconds without an answer after which it is found out what the sandbox has used before."""
        return min(GIVES_WAY_SECONDS, limit / 10)

    def left(self, usage: BoxUsage | SandboxError, wall: float) -> float | None:
        """Seconds until it is looked at again; None where the call is over. `wall` is since it began."""
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
    """Waits for the answer, for which the sandbox is ended when the pace is over. The call has begun."""
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
    """Waits until there is something to do, at the latest when so many seconds are over in which it gives way or has
    its share; whether it is answered."""
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
    """Measures what was used; nothing is known where nobody says it."""
    now: Future[BoxUsage | SandboxError] = Future()
    of.measure(now.set_result)
    try:
        first, last = before.result(timeout=MEASURE_SECONDS), now.result(timeout=MEASURE_SECONDS)
    except TimeoutError:
        return Spent()
    if isinstance(first.usage, BoxUsage) and isinstance(last, BoxUsage):
        return spent(first.usage, last, first.unseen)
    return Spent()
