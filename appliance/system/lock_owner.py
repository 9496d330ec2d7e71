"""Reads the owner of a data folder from its lock file; needs no ledger, so clients can use it."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import NamedTuple

DEMONSTRATION = "demonstration"
WAIT_FOR_IT = (
    "wait until it ends; `assay serve` continues from there. Or stop it with Ctrl-C: nothing is lost, "
    "and `assay demo` resumes later"
)


class LockOwner(NamedTuple):
    """Process that holds a lock. `pid` is None and `purpose` empty if it did not write them."""

    pid: int | None
    purpose: str = ""

    @property
    def stopped(self) -> bool:
        """True if the process was stopped by a signal, and does nothing until it gets SIGCONT."""
        try:
            return Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"
        except (OSError, IndexError):
            return False

    @property
    def words(self) -> str:
        who = "another process" if self.pid is None else f"the process with pid {self.pid}"
        if self.purpose == DEMONSTRATION:
            return "a demonstration" if self.pid is None else f"a demonstration (`assay demo`, pid {self.pid})"
        return who


def owner_of(path: Path) -> LockOwner | None:
    """Returns the process that holds a lock file's lock, or None. Creates nothing and does not block."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return owner_in(descriptor)
    finally:
        os.close(descriptor)
    return None


def owner_in(descriptor: int) -> LockOwner:
    """Parses the owner's process id and purpose from an open lock file."""
    pid, _, purpose = os.pread(descriptor, 64, 0).decode(errors="replace").partition("\n")
    known = DEMONSTRATION if purpose.strip() == DEMONSTRATION else ""
    return LockOwner(int(pid) if pid.isascii() and pid.isdigit() else None, known)


def written(purpose: str) -> bytes:
    """Returns the bytes that this process writes into its lock file: process id and purpose."""
    return f"{os.getpid()}\n{purpose}\n".encode() if purpose else f"{os.getpid()}\n".encode()
