"""Watches disk, memory and GPUs: work pauses before they run out, and goes on by itself when there is enough again.

What always holds: the decision is a pure function of what there is, of the limits and of what is paused already, so
that nothing begins and pauses in turns: to begin takes more than to go on does. Work that pauses is stopped in order;
what is on record is gone on with.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from appliance.daemon.contract.errors import NoRoomError
from appliance.daemon.machine.gpu_watch import GpuState, gpu_reasons
from appliance.system.read_only_disk import read_only_reason

DISK_SHARE = 0.5
"""Of the room that beginning takes, below which work under way pauses."""
MEMORY_FACTOR = 2.0
"""So many times the memory at which work pauses has to be free before it goes on, where there is as much."""
COOLER_CELSIUS = 10.0
"""By which a GPU has to be cooler than where work pauses before it goes on."""
GIB = 2**30


@dataclass(frozen=True)
class ResourceLimits:
    disk_gib: float
    """That beginning takes."""
    memory_gib: float
    """Below which work pauses; 0: never."""
    gpu_gib: float = 0.0
    """What others have to leave of each GPU; 0: nothing."""
    gpu_celsius: float = 0.0
    """At which work pauses; 0: never."""


@dataclass(frozen=True)
class FreeResources:
    disk_gib: float
    memory_gib: float | None
    """None where the machine does not say."""
    gpus: tuple[GpuState, ...] = ()
    read_only: str = ""
    """Why the data folder takes no writes; empty while it does."""
    memory_total_gib: float | None = None


def pause_reasons(free: FreeResources, limits: ResourceLimits, paused: bool) -> list[str]:
    """Why work has to pause, a sentence each; none while it may go on. `paused` says that it does not run now, so that
    what is asked is whether it may begin."""
    reasons = [free.read_only] if free.read_only else []
    least = limits.disk_gib * (1.0 if paused else DISK_SHARE)
    if free.disk_gib < least:
        reasons.append(f"the disk has {free.disk_gib:.2f} GiB left, and work takes {least:g}")
    needed = memory_needed(limits.memory_gib, free.memory_total_gib, paused)
    if free.memory_gib is not None and free.memory_gib < needed:
        reasons.append(f"the machine has {free.memory_gib:.2f} GiB of memory left, and work takes {needed:g}")
    celsius = limits.gpu_celsius - (COOLER_CELSIUS if paused and limits.gpu_celsius else 0.0)
    for gpu in free.gpus:
        reasons += gpu_reasons([gpu], memory_needed(limits.gpu_gib, gpu.total_gib, paused), celsius)
    return reasons


def memory_needed(limit: float, total: float | None, paused: bool) -> float:
    """GiB that have to be free: the limit, and for what paused twice as much, but never more than half way from the
    limit to all that there is: twice a large limit is never free."""
    if not paused:
        return limit
    factor = MEMORY_FACTOR * limit
    return factor if total is None else max(limit, min(factor, (limit + total) / 2))


def free_resources(
    data: Path, meminfo: Path = Path("/proc/meminfo"), gpus: Callable[[], tuple[GpuState, ...]] = tuple
) -> FreeResources:
    """What there is now. Raises OSError where the data folder cannot be asked about."""
    memory = _memory_gib(meminfo)
    return FreeResources(
        shutil.disk_usage(data).free / GIB,
        memory.get("MemAvailable"),
        gpus(),
        read_only_reason(data),
        memory.get("MemTotal"),
    )


def _memory_gib(meminfo: Path) -> dict[str, float]:
    found: dict[str, float] = {}
    try:
        for line in meminfo.read_text().splitlines():
            name, _, value = line.partition(":")
            if name in ("MemAvailable", "MemTotal"):
                found[name] = int(value.split()[0]) * 1024 / GIB
    except (OSError, ValueError, IndexError):
        pass
    return found


class ResourceWatch:
    """Its methods may be called from any thread. `look` says what there is, `limits` what is asked for."""

    def __init__(self, look: Callable[[], FreeResources], limits: Callable[[], ResourceLimits]) -> None:
        self._look, self._limits = look, limits
        self._paused = False

    def pause_reason(self) -> str:
        """Why work under way has to pause; empty while it may go on."""
        reasons = pause_reasons(self._look(), self._limits(), paused=False)
        self._paused = self._paused or bool(reasons)
        return "; ".join(reasons)

    def require(self) -> None:
        """Raises NoRoomError where work paused and there is not enough yet for it to go on."""
        if not self._paused:
            return
        reasons = pause_reasons(self._look(), self._limits(), paused=True)
        if reasons:
            raise NoRoomError("; ".join(reasons), hint="it goes on by itself when there is enough")
        self._paused = False
