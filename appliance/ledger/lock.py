"""Gives a data folder one owner: an exclusive lock that the kernel drops with its process, however that ends."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from appliance.ledger.ledger import LedgerError


class DataLockedError(LedgerError):
    """Says that another process owns this data folder. `pid` is None where it did not write its own."""

    def __init__(self, data: Path, pid: int | None) -> None:
        who = "another process" if pid is None else f"the process with pid {pid}"
        super().__init__(
            f"{who} already works on {data}",
            hint="use it (`assay status`), stop it first, or choose another folder with --data",
        )
        self.pid = pid


@contextmanager
def data_lock(data: Path) -> Iterator[Path]:
    """Holds `<data>/run/lock`, and gives its path; in it is the owner's pid for people to read.

    Raises DataLockedError at once when it is taken, LedgerError when the folder cannot be written.
    """
    path = data / "run" / "lock"
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise LedgerError(
            f"the data folder {data} cannot be used: {error.strerror}",
            hint="make it writable for the user that runs the daemon, or choose another with --data",
        ) from error
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise DataLockedError(data, _pid_in(descriptor)) from None
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        yield path
    finally:
        os.close(descriptor)


def require_unlocked(data: Path) -> None:
    """Looks whether another process works on the folder, and makes nothing there. Raises DataLockedError then."""
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        descriptor = os.open(data / "run" / "lock", flags)
    except OSError:
        return  # `data_lock` says what is wrong
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        raise DataLockedError(data, _pid_in(descriptor)) from None
    finally:
        os.close(descriptor)


def _pid_in(descriptor: int) -> int | None:
    text = os.pread(descriptor, 32, 0).decode(errors="replace").strip()
    return int(text) if text.isascii() and text.isdigit() else None
