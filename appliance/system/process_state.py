"""State of processes: stopped by a signal, killed by the kernel for lack of memory, and exit codes of a worker.

Invariants: only processes of that very group count (`oom_kill` of memory.events.local, or memory.oom_control with
cgroup v1), so a sandbox in its own group is never mistaken for the observed process. Without a count nothing is
claimed. Source: Linux, Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/memory.rst.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Self


def is_stopped(pid: int) -> bool:
    """True if a process is stopped by SIGSTOP or a debugger. See proc(5)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "Tt"
    except OSError:
        return False


_GROUPS = Path("/sys/fs/cgroup")


@dataclass(frozen=True)
class MemoryKills:
    """Number of out-of-memory kills that the kernel counted in one process's control group, at one moment."""

    counter: Path | None
    count: int

    @classmethod
    def seen_from(cls, pid: int) -> Self:
        """Reads the number of out-of-memory kills in a live process's control group; an ended process no longer shows
        its group."""
        counter = _counter(pid)
        return cls(counter, 0 if counter is None else _count(counter))

    @property
    def more(self) -> bool:
        """True if the kernel has killed for lack of memory in the control group since."""
        return self.counter is not None and _count(self.counter) > self.count


def _counter(pid: int) -> Path | None:
    try:
        lines = Path(f"/proc/{pid}/cgroup").read_text().splitlines()
    except OSError:
        return None
    found = None
    for _, parts, path in (line.split(":", 2) for line in lines):
        if "memory" in parts.split(","):
            return Path(f"{_GROUPS}/memory{path}/memory.oom_control")
        if not parts:
            found = Path(f"{_GROUPS}{path}/memory.events.local")
    return found


def _count(counter: Path) -> int:
    try:
        words = [line.split() for line in counter.read_text().splitlines()]
    except OSError:
        return 0
    return next((int(line[1]) for line in words if line[:1] == ["oom_kill"]), 0)


CANNOT = 2
"""The work is impossible as requested; do not retry."""
LEFT = 3
"""The worker abandoned an ended job whose work did not stop."""
MISCONFIGURED = 4
"""The configuration is unusable; do not retry until it, or what it names, has changed."""
