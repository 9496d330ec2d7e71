"""Reads what any host user can see of a sandbox: control groups, their processes, open descriptors.

A box is known by its identity: each of its groups' names ends with it. The broker is not asked, so a broker that
falsely reports a cleanup is caught.
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
    """Finds the control group folders of a box in every hierarchy. Groups that vanish meanwhile are skipped."""
    found = []
    for folder, below, _ in os.walk(CGROUPS):
        mine = [name for name in below if name == box or name.endswith(f".{box}")]
        found += [Path(folder) / name for name in mine]
        below[:] = [name for name in below if name not in mine]
    return found


def processes(folders: list[Path]) -> set[int]:
    """Returns the ids of processes in these control groups and their subgroups; none for a vanished group."""
    found: set[int] = set()
    for folder in folders:
        for path, _, _ in os.walk(folder):
            try:
                found |= {int(line) for line in (Path(path) / "cgroup.procs").read_text().split()}
            except OSError:
                continue
    return found


def alive(process: int) -> bool:
    """True if the process exists and is not a zombie."""
    return start_ticks(process) is not None


def descriptors() -> int:
    """Returns the number of open descriptors of this process."""
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - names only


def mounts() -> str:
    return Path("/proc/self/mountinfo").read_text()


def becomes_true(condition: Callable[[], bool], *, seconds: float) -> bool:
    """Polls a condition for at most `seconds`; True if it held in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def pss_mib(processes: Iterable[int]) -> float | None:
    """Sums the proportional memory (PSS) of processes, in MiB; None without permission. Vanished processes count
    nothing.

    Processes that share one address space, such as systrap's pairs, are counted once (kcmp(2)).
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
    """True if two processes share one address space; False if the kernel cannot tell, which overestimates the sum."""
    number = SYS_KCMP.get(os.uname().machine)
    return number is not None and libc.syscall(number, first, second, KCMP_VM, 0, 0) == 0


def charged_mib(folders: list[Path]) -> float:
    """Returns the kernel's memory charge of these control groups in MiB, in either cgroup version."""
    for folder in folders:
        for name in ("memory.current", "memory.usage_in_bytes"):
            try:
                return int((folder / name).read_text()) / (1 << 20)
            except OSError:
                continue
    return 0.0
