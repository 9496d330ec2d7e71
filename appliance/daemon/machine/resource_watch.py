"""Watches disk, memory and GPUs: work pauses before they run out and resumes when there is enough again.

Invariants: the decision is a pure function of resources, limits and the paused state; starting needs more than
continuing, so work does not start and pause in turns. Pausing work stops in order and resumes from the records.
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
"""Share of the disk space required to start below which running work pauses."""
MEMORY_FACTOR = 2.0
"""Multiple of the memory limit that must be free before paused work resumes, capped by `memory_needed`."""
COOLER_CELSIUS = 10.0
"""Degrees below the pause temperature that a GPU must reach before work resumes."""
GIB = 2**30


@dataclass(frozen=True)
class ResourceLimits:
    disk_gib: float
    """GiB of disk space required to start."""
    memory_gib: float
    """GiB of free memory below which work pauses; 0: never."""
    gpu_gib: float = 0.0
    """GiB that others must leave of each GPU; 0: no limit."""
    gpu_celsius: float = 0.0
    """Temperature at which work pauses; 0: never."""


@dataclass(frozen=True)
class FreeResources:
    disk_gib: float
    memory_gib: float | None
    """Free memory in GiB; None if unknown."""
    gpus: tuple[GpuState, ...] = ()
    read_only: str = ""
    """Reason why the data folder is read-only; empty if it is writable."""
    memory_total_gib: float | None = None


def pause_reasons(free: FreeResources, limits: ResourceLimits, paused: bool) -> list[str]:
    """Returns why work must pause for lack of disk, memory or GPU room, one sentence each; empty if it may run.
    `paused` means that it does not run now, so the limits for starting apply."""
    reasons = [free.read_only] if free.read_only else []
    least = limits.disk_gib * (1.0 if paused else DISK_SHARE)
    if free.disk_gib < least:
        reasons.append(f"the disk has {free.disk_gib:.2f} GiB left, and work needs {least:g}")
    needed = memory_needed(limits.memory_gib, free.memory_total_gib, paused)
    if free.memory_gib is not None and free.memory_gib < needed:
        reasons.append(f"the machine has {free.memory_gib:.2f} GiB of memory left, and work needs {needed:g}")
    celsius = limits.gpu_celsius - (COOLER_CELSIUS if paused and limits.gpu_celsius else 0.0)
    for gpu in free.gpus:
        reasons += gpu_reasons([gpu], memory_needed(limits.gpu_gib, gpu.total_gib, paused), celsius)
    return reasons


def memory_needed(limit: float, total: float | None, paused: bool) -> float:
    """Returns the GiB of memory that must be free for work to run: the limit; for paused work twice that, capped
    halfway between the limit and the total, since twice a large limit is never free."""
    if not paused:
        return limit
    factor = MEMORY_FACTOR * limit
    return factor if total is None else max(limit, min(factor, (limit + total) / 2))


def free_resources(
    data: Path, meminfo: Path = Path("/proc/meminfo"), gpus: Callable[[], tuple[GpuState, ...]] = tuple
) -> FreeResources:
    """Measures the free disk space, memory and GPU memory of the daemon's machine. Raises OSError if the data folder is
    inaccessible."""
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
    """Decides when work pauses because disk, memory or GPUs run short; thread-safe. `look` measures, `limits` returns
    the limits."""

    def __init__(self, look: Callable[[], FreeResources], limits: Callable[[], ResourceLimits]) -> None:
        self._look, self._limits = look, limits
        self._paused = False

    def pause_reason(self) -> str:
        """Measures disk, memory and GPUs, and returns why running work must pause; empty if it may continue."""
        reasons = pause_reasons(self._look(), self._limits(), paused=False)
        self._paused = self._paused or bool(reasons)
        return "; ".join(reasons)

    def require(self) -> None:
        """Raises NoRoomError if work paused and disk, memory or GPUs do not yet suffice to resume."""
        if not self._paused:
            return
        reasons = pause_reasons(self._look(), self._limits(), paused=True)
        if reasons:
            raise NoRoomError("; ".join(reasons), hint="it resumes by itself when there is enough")
        self._paused = False
