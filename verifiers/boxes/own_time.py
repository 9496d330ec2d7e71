"""The rule for when a watched process has used up its time limit.

Invariants: a time limit counts the CPU time of the process itself. Wall clock ends only idle processes and, at last,
those that others starve; a process ended for starvation is not to blame. So machine load decides no verdict.
"""

from __future__ import annotations

import time

PATIENCE = 10.0
"""Wall-clock limit of a starved process, as a multiple of its time limit."""
LAST_PATIENCE = 40.0
"""Wall-clock multiple of a second and last attempt, which keeps its priority. Even at load 40 per processor, a hang
uses up its own time."""
REST_SHARE = 0.01
"""Share of wall clock at or below which a process counts as idle: stopped or waiting."""


def is_over(computed: float, wall: float, seconds: float, least: float = 0.0, patience: float = PATIENCE) -> bool:
    """True if the time limit is used up. `computed`, `wall`, `seconds` (the limit) and `least` are in seconds.

    Before `least` seconds of wall clock only CPU time counts, because a process that has just lowered its priority on a
    busy machine looks idle.
    """
    rests = wall >= max(seconds, least) and computed <= REST_SHARE * wall
    return computed >= seconds or rests or wall >= max(patience * seconds, least)


def computed_by(process: int) -> float:
    """Returns the CPU seconds that a process has used (clock_getcpuclockid(3)); 0 if unknown."""
    try:
        return time.clock_gettime((~process << 3) | 2)
    except OSError:
        return 0.0
