"""One owner for a data folder: an exclusive lock that the kernel drops with its process, however that ends."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from types import TracebackType
from typing import Self

from appliance.ledger.ledger import LedgerError


class DataLockedError(LedgerError):
    """Another process owns this data folder. `pid` is None when it has not said which it is."""

    def __init__(self, data: Path, pid: int | None) -> None:
        who = "another process" if pid is None else f"the process with pid {pid}"
        super().__init__(
            f"{who} already works on {data}",
            hint="use it (`assay status`), stop it first, or choose another folder with --data",
        )
        self.pid = pid


class DataLock:
    """Context manager over `<data>/run/lock`, which holds the owner's pid for people to read.

    Raises DataLockedError at once when it is taken, LedgerError when the folder cannot be written.
    """

    def __init__(self, data: Path) -> None:
        self.data = data
        self.path = data / "run" / "lock"
        self._descriptor: int | None = None

    def __enter__(self) -> Self:
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise LedgerError(
                f"the data folder {self.data} cannot be used: {error.strerror}",
                hint="make it writable for the user that runs the daemon, or choose another with --data",
            ) from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pid = _pid_in(descriptor)
            os.close(descriptor)
            raise DataLockedError(self.data, pid) from None
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        self._descriptor = descriptor
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def _pid_in(descriptor: int) -> int | None:
    text = os.pread(descriptor, 32, 0).decode(errors="replace").strip()
    return int(text) if text.isascii() and text.isdigit() else None
