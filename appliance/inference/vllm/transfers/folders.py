"""Makes folders that one process fills, and removes those whose process was killed.

What always holds: a folder has mode 0700 and is locked for as long as the process that made it lives. One that nobody
holds any more goes when the next is made, a minute after it was made: until then it may not be locked yet.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import time
from contextlib import suppress
from pathlib import Path

SETTLED_SECONDS = 60.0
SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - a folder of our own is made in it
SPARE = 2
"""Times its size that must be free in shared memory: of two pushes, both may be there for a while."""
_held: dict[Path, int] = {}
"""Open descriptors; what is locked through one is free when the process has ended, however it did."""


def make_folder(prefix: str, parent: Path | None = None) -> Path:
    """Makes one in `parent`, otherwise among temporary files, and removes what killed processes left there."""
    parent = Path(tempfile.gettempdir()) if parent is None else parent
    for left in parent.glob(f"{prefix}*"):
        with suppress(OSError):
            _remove_if_left(left)
    folder = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    _held[folder] = descriptor
    return folder


def private_folder(size: int, shared: Path = SHARED_MEMORY) -> Path:
    """Makes a folder of mode 0700 in shared memory, or among temporary files where that has no room for `size`."""
    roomy = os.access(shared, os.W_OK) and shutil.disk_usage(shared).free > SPARE * size
    return make_folder("assay-weights-", shared if roomy else None)


def remove_folder(folder: Path) -> None:
    """Removes one of ours. Removing it again does nothing."""
    shutil.rmtree(folder, ignore_errors=True)
    descriptor = _held.pop(folder, None)
    if descriptor is not None:
        os.close(descriptor)


def _remove_if_left(folder: Path) -> None:
    """Raises OSError where it is somebody else's, or in use."""
    found = folder.lstat()
    if found.st_uid != os.getuid() or time.time() - found.st_mtime < SETTLED_SECONDS:
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder)
    finally:
        os.close(descriptor)
