"""Reads each GPU's temperature and the memory that other programs leave, from the output of `nvidia-smi`.

Invariants: parsing is pure; the tool runs at most once in `SECONDS`, with a timeout; missing values are None and pause
nothing. A process counts as somebody else's only if it is visible on this machine and not ours: in a container, with
other process numbers, none is counted.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from appliance.nights.machine import Ask, ask, own_processes

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
