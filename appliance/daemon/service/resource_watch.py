"""Watches disk, memory and GPUs: work pauses before they run out and resumes when there is enough again.

Invariants: the decision is a pure function of resources, limits and the paused state; starting needs more than
continuing, so work does not start and pause in turns. Pausing work stops in order and resumes from the records.

Parsing is pure; the tool runs at most once in `SECONDS`, with a timeout; missing values are None and pause nothing. A
process counts as somebody else's only if it is visible on this machine and not ours: in a container, with other process
numbers, none is counted.
"""

from __future__ import annotations

import math
import shutil
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from appliance.daemon.contract import NoRoomError
from appliance.nights.machine import Ask, ask, own_processes
from appliance.system.durable_file import read_only_reason

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


SECONDS = 15.0
GIB_OF_MIB = 1 / 1024
GPUS = ("nvidia-smi", "--query-gpu=index,uuid,temperature.gpu,memory.total", "--format=csv,noheader,nounits")
USERS = ("nvidia-smi", "--query-compute-apps=gpu_uuid,pid,used_memory", "--format=csv,noheader,nounits")


@dataclass(frozen=True)
class GpuState:
    number: int
    celsius: float | None
    left_gib: float | None
    """Total memory minus what other programs use, in GiB."""
    others: tuple[int, ...] = ()
    """Process ids of other programs."""
    total_gib: float | None = None


def read_gpus(gpus: str, users: str, others: Callable[[int], bool]) -> tuple[GpuState, ...]:
    """Parses GPU states from `nvidia-smi`'s lines of `index, uuid, degrees, MiB` and of `uuid, process, MiB`; malformed
    lines are skipped. `others` returns True for a process of somebody else."""
    taken = _taken(users, others)
    found = []
    for line in gpus.splitlines():
        parts = [part.strip() for part in line.split(",")]
        if len(parts) != 4 or not parts[0].isdigit():
            continue
        total, theirs = _number(parts[3]), taken.get(parts[1], {})
        left = None if total is None else (total - sum(theirs.values())) * GIB_OF_MIB
        whole = None if total is None else total * GIB_OF_MIB
        found.append(GpuState(int(parts[0]), _number(parts[2]), left, tuple(theirs), whole))
    return tuple(found)


def _taken(users: str, others: Callable[[int], bool]) -> dict[str, dict[int, float]]:
    """Returns the GPU memory in MiB that other programs use, by GPU uuid and process id."""
    taken: dict[str, dict[int, float]] = {}
    for line in users.splitlines():
        parts = [part.strip() for part in line.split(",")]
        if len(parts) != 3 or not parts[1].isdigit() or not others(int(parts[1])):
            continue
        used = _number(parts[2])
        if used is not None:
            taken.setdefault(parts[0], {})[int(parts[1])] = used
    return taken


def _number(text: str) -> float | None:
    """Parses a number printed by `nvidia-smi`; None for `[N/A]`, `ERR!` and other words."""
    try:
        found = float(text)
    except ValueError:
        return None
    return found if math.isfinite(found) else None


def gpu_reasons(gpus: Iterable[GpuState], least_gib: float, most_celsius: float) -> list[str]:
    """Returns why work must pause because of a GPU's free memory or temperature, one sentence each; a limit of 0 is
    disabled."""
    reasons = []
    for gpu in gpus:
        if least_gib and gpu.left_gib is not None and gpu.left_gib < least_gib:
            who = ", ".join(map(str, gpu.others[:3]))
            reasons.append(
                f"others (process {who}) leave {gpu.left_gib:.1f} GiB of GPU {gpu.number}, and work needs {least_gib:g}"
            )
        if most_celsius and gpu.celsius is not None and gpu.celsius >= most_celsius:
            reasons.append(f"GPU {gpu.number} has {gpu.celsius:.0f} °C, and work needs less than {most_celsius:g}")
    return reasons


class GpuReader:
    """Reads the GPUs' states, at most every `SECONDS`. One thread at a time queries; others get the last result."""

    def __init__(
        self, pid: int, *, run: Ask = ask, clock: Callable[[], float] = time.monotonic, root: Path = Path("/")
    ) -> None:
        """Creates the reader of GPU states. Process `pid` and its children do not count as other programs."""
        self._pid, self._run, self._clock, self._root = pid, run, clock, root
        self._next = -math.inf
        self._seen: tuple[GpuState, ...] = ()

    def look(self) -> tuple[GpuState, ...]:
        if self._clock() >= self._next:
            self._next = self._clock() + SECONDS
            self._seen = self._read()
        return self._seen

    def _read(self) -> tuple[GpuState, ...]:
        gpus = self._run(GPUS)
        if gpus is None:
            return ()
        own = own_processes(self._pid, self._root)

        def others(pid: int) -> bool:
            return pid not in own and (self._root / "proc" / str(pid)).exists()

        return read_gpus(gpus, self._run(USERS) or "", others)
