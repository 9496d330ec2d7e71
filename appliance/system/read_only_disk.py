"""Asks whether a file system takes writes, by writing: a time, and nothing else.

What always holds: nobody is asked who may not know. A file system that the kernel took from use after an error says so
to writers alone: its mount still reads as writable, and so does access(2).
"""

from __future__ import annotations

import errno
import os
from pathlib import Path

HINT = (
    "work goes on by itself when it takes writes again. Where the kernel made it read-only after an error, stop the "
    "daemon, unmount it, check it (fsck), mount it and start again: what was recorded is intact"
)


def is_read_only(path: Path) -> bool:
    """Whether the file system of that file or folder, which is ours, takes no writes."""
    try:
        os.utime(path)
    except OSError as error:
        return error.errno == errno.EROFS
    return False


def read_only_reason(data: Path) -> str:
    """Says in a sentence that a data folder, whose lock somebody holds, is read-only; empty where it is not."""
    return said(data) if is_read_only(data / "run" / "lock") else ""


def said(data: Path) -> str:
    return f"the data folder {data} is on a disk that is read-only now"
