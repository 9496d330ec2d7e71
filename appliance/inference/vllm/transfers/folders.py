"""Creates private folders for one process, and removes those of killed processes.

Invariants: a folder has mode 0700 and is locked while its creator lives. An unlocked folder is removed when the next is
created, if older than a minute, since a new one may not be locked yet.
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
"""Multiple of its size that must be free in shared memory: two pushes may coexist for a while."""
_held: dict[Path, int] = {}
"""Open descriptors by folder; their locks end with the process."""


def make_folder(prefix: str, parent: Path | None = None) -> Path:
    """Creates a folder in `parent`, by default the temporary folder, and removes those of killed processes there."""
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
    """Creates a folder of mode 0700 in shared memory, or in the temporary folder if `size` does not fit."""
    roomy = os.access(shared, os.W_OK) and shutil.disk_usage(shared).free > SPARE * size
    return make_folder("assay-weights-", shared if roomy else None)


def remove_folder(folder: Path) -> None:
    """Removes one of our temporary folders. Removing it again does nothing."""
    shutil.rmtree(folder, ignore_errors=True)
    descriptor = _held.pop(folder, None)
    if descriptor is not None:
        os.close(descriptor)


def _remove_if_left(folder: Path) -> None:
    """Removes a temporary folder that a killed process left. Raises OSError if it is in use, or another user's."""
    found = folder.lstat()
    if found.st_uid != os.getuid() or time.time() - found.st_mtime < SETTLED_SECONDS:
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder)
    finally:
        os.close(descriptor)
