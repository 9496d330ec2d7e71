"""Tells an end for want of memory from any other SIGKILL: the kernel counts those in each control group.

What always holds: only processes of that very group are counted (`oom_kill` of memory.events.local, or of
memory.oom_control where control groups are of version 1), so that a sandbox, which has a group of its own, is never
taken for what is asked about. Where the kernel shows no such count, nothing is claimed. Source: Linux,
Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/memory.rst.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Self

_GROUPS = Path("/sys/fs/cgroup")


@dataclass(frozen=True)
class MemoryKills:
    """What the kernel had counted at one moment in the group of one process."""

    counter: Path | None
    count: int

    @classmethod
    def seen_from(cls, pid: int) -> Self:
        """Looks now, while it lives: of one that has ended the kernel shows another group."""
        counter = _counter(pid)
        return cls(counter, 0 if counter is None else _count(counter))

    @property
    def more(self) -> bool:
        """Whether any was counted in that group since."""
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
