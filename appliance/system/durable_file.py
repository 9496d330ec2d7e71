"""Writes files durably and atomically: after a kill the old content remains, or the new one is complete on disk.

Invariants: only a write is trusted. After an error the kernel rejects writes although the mount, and access(2), still
report the file system as writable.
"""

from __future__ import annotations

import ctypes
import errno
import os
from pathlib import Path


def expanded(path: str | Path) -> Path:
    return Path(os.path.expanduser(path))  # noqa: PTH111 - Path.expanduser raises RuntimeError


_AT_FDCWD, _RENAME_EXCHANGE = -100, 2
CANNOT_EXCHANGE = frozenset({errno.EINVAL, errno.ENOSYS, errno.ENOTSUP})
"""Errors of file systems without an exchange operation, such as NFS."""


def replace_file(path: Path, content: bytes) -> None:
    """Replaces a file's content atomically, through a new file that is synced to disk first; its mode stays. Raises
    OSError."""
    beside = path.with_name(f".{path.name}.new")
    with beside.open("wb") as out:
        if path.exists():
            os.fchmod(out.fileno(), path.stat().st_mode & 0o7777)
        out.write(content)
        out.flush()
        os.fsync(out.fileno())
    beside.replace(path)


def write_private(path: Path, content: bytes) -> None:
    """Writes a new file, complete or not at all, that only its owner may read. Raises OSError; FileExistsError if it
    exists."""
    beside = path.with_name(f".{path.name}.new")
    beside.unlink(missing_ok=True)
    write_new(beside, content)
    try:
        os.link(beside, path)
    finally:
        beside.unlink()


def write_new(path: Path, content: bytes, mode: int = 0o600) -> None:
    """Writes a new file and syncs it, following no link. Raises OSError; FileExistsError if it exists."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
    with os.fdopen(handle, "wb") as out:
        out.write(content)
        out.flush()
        os.fsync(out.fileno())


def sync_folder(folder: Path) -> None:
    """Syncs a folder's entries to disk. Raises OSError."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def exchange(one: Path, other: Path) -> None:
    """Exchanges two files or folders atomically (renameat2, Linux). Raises OSError, with a number in `CANNOT_EXCHANGE`
    if the file system does not support it."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.renameat2(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), str(one))


READ_ONLY_HINT = (
    "work resumes by itself once writes succeed. If the kernel made it read-only after an error, stop the "
    "daemon, unmount it, run fsck, mount it and start again: all records are intact"
)


def is_read_only(path: Path) -> bool:
    """True if the file system of our file or folder rejects writes. Tried by a write that changes only a timestamp."""
    try:
        os.utime(path)
    except OSError as error:
        return error.errno == errno.EROFS
    return False


def read_only_reason(data: Path) -> str:
    """Returns a message if a data folder in use is read-only; empty otherwise."""
    return read_only_message(data) if is_read_only(data / "run" / "lock") else ""


def read_only_message(data: Path) -> str:
    return f"the data folder {data} is on a read-only disk"
