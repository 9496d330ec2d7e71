"""Decides when to stop waiting for processes, by their activity instead of elapsed time.

Invariants: a process group that uses CPU time, reads, or waits for a disk is waited for, however slow the machine.
Observation sends nothing to the processes and changes nothing. See proc(5).
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Patience:
    """Limits of waiting for processes that do not answer."""

    idle_seconds: float = 180.0
    """Maximum seconds without CPU use; even a loaded machine gives a busy process some time."""
    busy_seconds: float = 1800.0
    """Maximum CPU seconds for one answer."""
    idle_share: float = 0.0
    """CPU share that counts as idle, for threads that wake up only to poll."""


class Effort(NamedTuple):
    """CPU time, reads and disk waits of processes so far."""

    seconds: float = 0.0
    """CPU time."""
    read: int = 0
    """Bytes read."""
    on_disk: bool = False
    """True if a process waits for a disk now, as in a flush."""


def effort_of(groups: Collection[int]) -> Effort:
    """Sums the CPU time, reads and disk waits of all processes in these process groups."""
    seconds, read, on_disk = 0.0, 0, False
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError, ValueError, IndexError):
            fields = stat.read_text().rpartition(")")[2].split()
            if int(fields[2]) in groups:
                seconds += (int(fields[11]) + int(fields[12])) / TICKS
                on_disk = on_disk or fields[0] == "D"
                read += int(stat.with_name("io").read_text().split()[1])
    return Effort(seconds, read, on_disk)


class Wait:
    """One wait for one answer of a process, given up when the process does nothing for too long."""

    def __init__(
        self, effort: Callable[[], Effort], patience: Patience, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._effort = effort
        self._patience = patience
        self._clock = clock
        self._began = self._last = effort()
        self._moved = clock()

    def over(self) -> str:
        """Returns the reason to stop waiting for a process's answer; empty to continue."""
        now, effort = self._clock(), self._effort()
        nothing = self._patience.idle_share * (now - self._moved)
        if effort.seconds - self._last.seconds > nothing or effort.read != self._last.read or effort.on_disk:
            self._last, self._moved = effort, now
        if now - self._moved > self._patience.idle_seconds:
            return f"no CPU time used for {self._patience.idle_seconds:.0f} s"
        used = effort.seconds - self._began.seconds
        if used > self._patience.busy_seconds:
            return f"{used:.0f} s of CPU time used ({self._patience.busy_seconds:.0f} allowed)"
        return ""
