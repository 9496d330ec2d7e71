"""A file that only its owner may read, there whole or not at all, and never in another one's place."""

from __future__ import annotations

import os
from pathlib import Path


def write_private(path: Path, content: bytes) -> None:
    """Raises OSError; FileExistsError when there is one already."""
    beside = path.with_name(f".{path.name}.new")
    beside.unlink(missing_ok=True)
    handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(handle, "wb") as out:
        out.write(content)
        out.flush()
        os.fsync(out.fileno())
    try:
        os.link(beside, path)
    finally:
        beside.unlink()
