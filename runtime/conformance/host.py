"""Reads what the host shows of a sandbox to anybody who looks: control groups, processes in them, our descriptors.

A box is known by its identity: the name of each of its groups ends with it. Nothing is asked of the broker here, so a
broker that says that all is gone is not believed.
"""

from __future__ import annotations

import ctypes
import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from runtime.backends.lease import start_ticks

CGROUPS = Path("/sys/fs/cgroup")
SYS_KCMP = {"x86_64": 312, "aarch64": 272}
KCMP_VM = 1


def groups(box: str) -> list[Path]:
    """Finds the control groups of a box, by any hierarchy. A group that goes while we look is gone."""
    found = []
    for folder, below, _ in os.walk(CGROUPS):
        mine = [name for name in below if name == box or name.endswith(f".{box}")]
        found += [Path(folder) / name for name in mine]
        below[:] = [name for name in below if name not in mine]
    return found


def processes(folders: list[Path]) -> set[int]:
    """Finds the processes in these groups and in those below them; none where a group is gone."""
    found: set[int] = set()
    for folder in folders:
        for path, _, _ in os.walk(folder):
            try:
                found |= {int(line) for line in (Path(path) / "cgroup.procs").read_text().split()}
            except OSError:
                continue
    return found


def alive(process: int) -> bool:
    """Says whether there is such a process that is more than a zombie."""
    return start_ticks(process) is not None


def descriptors() -> int:
    """Counts those that this process has open."""
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - names only


def mounts() -> str:
    return Path("/proc/self/mountinfo").read_text()


def becomes_true(condition: Callable[[], bool], *, seconds: float) -> bool:
    """Waits for it, at most that long; whether it did."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def pss_mib(processes: Iterable[int]) -> float | None:
    """Adds up the memory of processes, together, shared pages by their share; None where we may not look, nothing of
    those gone.

    Processes that share one address space, as the pairs in which systrap runs a guest do, are counted once (kcmp(2)).
    """
    libc = ctypes.CDLL(None)
    counted: list[int] = []
    total = 0
    for process in processes:
        if any(_same_memory(libc, process, other) for other in counted):
            continue
        try:
            text = Path(f"/proc/{process}/smaps_rollup").read_text()
        except PermissionError:
            return None
        except (FileNotFoundError, ProcessLookupError):
            continue
        counted.append(process)
        total += sum(int(line.split()[1]) for line in text.splitlines() if line.startswith("Pss:"))
    return total / 1024


def _same_memory(libc: ctypes.CDLL, first: int, second: int) -> bool:
    """Where the kernel does not tell, they are taken for two: the sum is too large then, never too small."""
    number = SYS_KCMP.get(os.uname().machine)
    return number is not None and libc.syscall(number, first, second, KCMP_VM, 0, 0) == 0


def charged_mib(folders: list[Path]) -> float:
    """Reads what the kernel charges to these groups, in either version of its interface."""
    for folder in folders:
        for name in ("memory.current", "memory.usage_in_bytes"):
            try:
                return int((folder / name).read_text()) / (1 << 20)
            except OSError:
                continue
    return 0.0
