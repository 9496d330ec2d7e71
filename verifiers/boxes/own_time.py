"""When the clock of what computes for somebody is over: the rule of all who watch such a process.

What always holds: a clock counts what the process computed itself. Wall clock ends only what rests, and at last what
others keep from its end; whoever is ended so is not to blame. So how busy the machine is decides no verdict.
"""

from __future__ import annotations

import time

PATIENCE = 10.0
"""Wall clock of what computes but is kept from its end by others, in its seconds."""
LAST_PATIENCE = 40.0
"""The same of a second and last attempt, which gives way to nobody: with a load of forty for each processor a hang
still comes to the end of its own time."""
REST_SHARE = 0.01
"""Of its time: who computes less does not compute, but was stopped, or waits."""


def is_over(computed: float, wall: float, seconds: float, least: float = 0.0, patience: float = PATIENCE) -> bool:
    """All but `patience` are in seconds: what it computed, since when, its clock, and a wall clock before which only
    what it computed counts: on a full machine who has only just given way to others looks as if it rested."""
    rests = wall >= max(seconds, least) and computed <= REST_SHARE * wall
    return computed >= seconds or rests or wall >= max(patience * seconds, least)


def computed_by(process: int) -> float:
    """Processor seconds that a process has used (clock_getcpuclockid(3)); 0 where its kernel does not tell."""
    try:
        return time.clock_gettime((~process << 3) | 2)
    except OSError:
        return 0.0
