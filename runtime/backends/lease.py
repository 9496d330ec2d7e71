"""Ownership of a state folder's content: a process, distinguished from a later one with the same pid."""

from __future__ import annotations

import hashlib
import os
import re
import secrets
from pathlib import Path
from typing import NamedTuple, Self

LONGEST_SOCKET_PATH = 100
"""Longest socket path, in bytes. runsc has a Unix socket in its state folder; Linux allows 108 bytes, and runsc would
silently go elsewhere."""
BELOW_STATE = 72
"""Most bytes that owner, sandbox and socket names add to the state folder's path."""


def process_status(pid: int) -> list[str]:
    """Returns a process's fields in /proc/PID/stat from its state on (proc(5)); empty if the process is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return []


def start_ticks(pid: int) -> int | None:
    """Returns a process's start time in ticks since boot; None if it is gone or a zombie."""
    fields = process_status(pid)
    return None if not fields or fields[0] in ("Z", "X") else int(fields[19])


class Owner(NamedTuple):
    pid: int
    ticks: int
    token: str

    @classmethod
    def current(cls) -> Self:
        pid = os.getpid()
        ticks = start_ticks(pid)
        assert ticks is not None
        return cls(pid, ticks, secrets.token_hex(3))

    @classmethod
    def parse(cls, text: str) -> Self | None:
        found = re.fullmatch(r"(\d{1,10})-(\d{1,18})-([0-9a-f]{6})", text)
        return cls(int(found[1]), int(found[2]), found[3]) if found else None

    def __str__(self) -> str:
        return f"{self.pid}-{self.ticks}-{self.token}"

    def alive(self) -> bool:
        return start_ticks(self.pid) == self.ticks


def state_mark(state_dir: Path) -> str:
    """Returns eight hex characters that identify a broker's state folder in names outside it."""
    return hashlib.sha256(os.fsencode(state_dir.resolve())).hexdigest()[:8]


def working_folder(state_dir: Path) -> Path:
    """Returns the folder for a broker's sandboxes: inside its state folder, or, if too long, one under /run."""
    inside = state_dir.resolve()
    if len(os.fsencode(inside)) + BELOW_STATE <= LONGEST_SOCKET_PATH:
        return inside
    return Path(f"/run/assay-{state_mark(state_dir)}")
