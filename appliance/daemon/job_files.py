"""The files that come with jobs: `files/<sha256>` in the data folder.

What always holds: a file of that name has those bytes, or is not there. Files that no job names are taken away at the
next start, under the data folder's lock.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
from collections.abc import Collection
from pathlib import Path

_DIGEST = re.compile(r"[0-9a-f]{64}")


class JobFiles:
    """Raises OSError where the disk does not take them."""

    def __init__(self, data: Path) -> None:
        self.folder = data / "files"

    def put(self, content: bytes) -> str:
        """On disk when it returns; the digest that names it."""
        digest = hashlib.sha256(content).hexdigest()
        path = self.folder / digest
        if path.exists():
            return digest
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        beside = self.folder / f".{digest}.{secrets.token_hex(4)}"
        handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            with os.fdopen(handle, "wb") as out:
                out.write(content)
                out.flush()
                os.fsync(out.fileno())
            beside.replace(path)
        except BaseException:
            beside.unlink(missing_ok=True)
            raise
        above = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(above)
        finally:
            os.close(above)
        return digest

    def size(self, digest: str) -> int | None:
        """In bytes; None where there is none of that digest."""
        try:
            return (self.folder / digest).stat().st_size if _DIGEST.fullmatch(digest) else None
        except FileNotFoundError:
            return None

    def sweep(self, named: Collection[str]) -> None:
        """Takes away what no job names, and what an interrupted write left."""
        if self.folder.is_dir():
            for path in sorted(self.folder.iterdir()):
                if path.name not in named:
                    path.unlink()
