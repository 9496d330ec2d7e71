"""Detects a read-only file system by a write that changes only a timestamp.

Invariants: only a write is trusted. After an error the kernel rejects writes although the mount, and access(2), still
report the file system as writable.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path

HINT = (
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
    return said(data) if is_read_only(data / "run" / "lock") else ""


def said(data: Path) -> str:
    return f"the data folder {data} is on a read-only disk"
