"""Says when nobody should wait longer for processes: by what they do meanwhile, not by how long it lasts.

What always holds: a group of processes that uses a processor, reads, or waits for a disk is waited for, however slow
the machine is. Nothing is sent to it for that, and nothing of it changes. See proc(5).
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
    """How long processes may give no answer."""

    idle_seconds: float = 180.0
    """Without using any processor time: a loaded machine still gives a process that has work some of it."""
    busy_seconds: float = 1800.0
    """Of processor time, for one answer."""
    idle_share: float = 0.0
    """Of a processor, that counts as nothing: threads that wake up to see that there is nothing to do."""


class Effort(NamedTuple):
    """What processes have done so far."""

    seconds: float = 0.0
    """Of processor time."""
    read: int = 0
    """Bytes."""
    on_disk: bool = False
    """Whether one of them waits for a disk now, as in a flush of what it wrote."""


def effort_of(groups: Collection[int]) -> Effort:
    """Adds up what all processes of these process groups have done."""
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
    """Is one wait for one answer."""

    def __init__(
        self, effort: Callable[[], Effort], patience: Patience, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._effort = effort
        self._patience = patience
        self._clock = clock
        self._began = self._last = effort()
        self._moved = clock()

    def over(self) -> str:
        """Why nobody should wait longer; empty while somebody should."""
        now, effort = self._clock(), self._effort()
        nothing = self._patience.idle_share * (now - self._moved)
        if effort.seconds - self._last.seconds > nothing or effort.read != self._last.read or effort.on_disk:
            self._last, self._moved = effort, now
        if now - self._moved > self._patience.idle_seconds:
            return f"no processor time was used for {self._patience.idle_seconds:.0f} s"
        used = effort.seconds - self._began.seconds
        if used > self._patience.busy_seconds:
            return f"{used:.0f} s of processor time were used, and {self._patience.busy_seconds:.0f} are allowed"
        return ""
