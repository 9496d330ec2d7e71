"""Files that are on disk, whole, when the call returns: a kill leaves the old content or the new one, or no file."""

from __future__ import annotations

import ctypes
import errno
import os
from pathlib import Path


def expanded(path: str | Path) -> Path:
    return Path(os.path.expanduser(path))  # noqa: PTH111 - Path.expanduser raises RuntimeError


_AT_FDCWD, _RENAME_EXCHANGE = -100, 2
CANNOT_EXCHANGE = frozenset({errno.EINVAL, errno.ENOSYS, errno.ENOTSUP})
"""What a file system says that has no such operation, NFS for one."""


def replace_file(path: Path, content: bytes) -> None:
    """Raises OSError."""
    beside = path.with_name(f".{path.name}.new")
    with beside.open("wb") as out:
        out.write(content)
        out.flush()
        os.fsync(out.fileno())
    beside.replace(path)


def write_private(path: Path, content: bytes) -> None:
    """A file that only its owner may read, and never in another one's place. Raises OSError; FileExistsError when there
    is one already."""
    beside = path.with_name(f".{path.name}.new")
    beside.unlink(missing_ok=True)
    write_new(beside, content)
    try:
        os.link(beside, path)
    finally:
        beside.unlink()


def write_new(path: Path, content: bytes, mode: int = 0o600) -> None:
    """Writes a file that was not there, through no link. Raises OSError; FileExistsError when there is one."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
    with os.fdopen(handle, "wb") as out:
        out.write(content)
        out.flush()
        os.fsync(out.fileno())


def sync_folder(folder: Path) -> None:
    """Puts the names in it on disk. Raises OSError."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def exchange(one: Path, other: Path) -> None:
    """Gives each the name of the other in one step (renameat2, Linux): a kill leaves both names as they were, or both
    exchanged. Raises OSError; of `CANNOT_EXCHANGE` where the file system cannot do that."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.renameat2(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), str(one))
