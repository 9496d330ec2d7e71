"""Waits for a call with patience: what others took from it is not counted, and what takes long gives way.

What always holds: the limit is of the call's own time, in which it computed or rested, as the host's kernel tells it;
a call that computes for its limit is ended whatever its clock says, and every call is ended at the end of its wall
clock. What it says of a call holds for one within its limit as well. Where the kernel does not say who waited, all wall
clock counts.
"""

from __future__ import annotations

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
MEASURE_PAUSE_SECONDS = 0.1
"""Between looks at what a call has used, at least."""
MEASURE_SECONDS = 5.0
"""How long the broker may take to say it."""

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


class Watched(NamedTuple):
    """Is what can be done about the sandbox of the call. None of it raises or waits."""

    measure: Callable[[Answered], None]
    give_way: Callable[[bool], None]
    end: Callable[[], None]
    """Kills it; the call is answered then."""


def spent(before: BoxUsage, now: BoxUsage) -> Spent:
    """Takes what was used between two measurements. It waited as long as the one of its threads that waited longest:
    the waits of many threads at once are no longer than one's."""
    waited = max((seconds - before.waits.get(thread, 0.0) for thread, seconds in now.waits.items()), default=0.0)
    return Spent(max(0.0, now.cpu_seconds - before.cpu_seconds), max(0.0, waited))


def is_over(pace: Pace, used: Spent, wall: float) -> bool:
    if wall >= pace.wall or wall - used.waited >= pace.own:
        return True
    return used.computed is not None and used.computed >= pace.own * max(1.0, pace.cpus)


def until_answered(answer: Future[CallOutcome], pace: Pace, of: Watched) -> Spent:
    """Waits for the answer, for which the sandbox is ended when the pace is over. The call has begun."""
    begun = time.monotonic()
    used, gives_way, gave_way = Spent(), False, False
    if _is_answered(answer, min(FIRST_SECONDS, pace.own / 10)):
        return used
    before: Future[BoxUsage | SandboxError] = Future()
    of.measure(before.set_result)
    while not _wait(answer, begun, pace, used, gave_way):
        wall = time.monotonic() - begun
        if not gave_way and wall >= GIVES_WAY_SECONDS:
            gives_way = gave_way = True
            of.give_way(True)
        if gives_way and wall >= GIVES_WAY_LIMITS * pace.own:
            gives_way = False
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


def _wait(answer: Future[CallOutcome], begun: float, pace: Pace, used: Spent, gave_way: bool) -> bool:
    """Waits until there is something to do; whether it is answered."""
    wall = time.monotonic() - begun
    left = min(pace.own + used.waited, pace.wall) - wall
    seconds = max(MEASURE_PAUSE_SECONDS if wall >= pace.own else 0.0, left)
    if not gave_way:
        seconds = min(seconds, max(0.0, GIVES_WAY_SECONDS - wall))
    return _is_answered(answer, seconds)


def _is_answered(answer: Future[CallOutcome], seconds: float) -> bool:
    try:
        answer.result(timeout=seconds)
    except TimeoutError:
        return False
    return True


def _measure(before: Future[BoxUsage | SandboxError], of: Watched) -> Spent:
    """Measures what was used; nothing is known where nobody says it."""
    now: Future[BoxUsage | SandboxError] = Future()
    of.measure(now.set_result)
    try:
        first, last = before.result(timeout=MEASURE_SECONDS), now.result(timeout=MEASURE_SECONDS)
    except TimeoutError:
        return Spent()
    if isinstance(first, BoxUsage) and isinstance(last, BoxUsage):
        return spent(first, last)
    return Spent()
