"""Exclusive lock of a data folder, which the kernel releases when the owning process ends."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from appliance.ledger.ledger import LedgerError
from appliance.system.lock_owner import DEMONSTRATION, WAIT_FOR_IT, LockOwner, owner_in, owner_of, written


class DataLockedError(LedgerError):
    """Another process owns this data folder."""

    def __init__(self, data: Path, owner: LockOwner) -> None:
        use = "use it (`assay status`), stop it first, or choose another folder with --data"
        other = f"{WAIT_FOR_IT}; --data names another folder"
        super().__init__(
            f"{owner.words} already works on {data}", hint=other if owner.purpose == DEMONSTRATION else use
        )
        self.pid = owner.pid


@contextmanager
def data_lock(data: Path, purpose: str = "") -> Iterator[Path]:
    """Locks a data folder inside the block and yields the path of its lock file. The file contains the owner's pid and
    purpose.

    Raises DataLockedError immediately if it is taken, LedgerError if the folder is not writable.
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
            raise DataLockedError(data, owner_in(descriptor)) from None
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, written(purpose), 0)
        yield path
    finally:
        os.close(descriptor)


def require_unlocked(data: Path) -> None:
    """Raises DataLockedError if another process owns the data folder; creates nothing there."""
    if (owner := owner_of(data / "run" / "lock")) is not None:
        raise DataLockedError(data, owner)
