"""Files submitted with jobs: `files/<sha256>` in the data folder.

Invariants: a file of that name has those bytes, or is absent. Files that no job names are removed at the next start,
under the data folder's lock.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from appliance.records.jobs import Job
from appliance.system.durable_file import sync_folder, write_new
from runtime.errors import InfrastructureError

_DIGEST = re.compile(r"[0-9a-f]{64}")
HINT = "give it again with `assay submit`, with its files"


class JobFiles:
    def __init__(self, data: Path) -> None:
        self.folder = data / "files"

    def put(self, content: bytes) -> str:
        """Stores a job's file on disk under its SHA-256, and returns that. Raises OSError."""
        digest = hashlib.sha256(content).hexdigest()
        path = self.folder / digest
        with suppress(FileNotFoundError):
            if path.read_bytes() == content:
                return digest
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        beside = self.folder / f".{digest}.{secrets.token_hex(4)}"
        try:
            write_new(beside, content)
            beside.replace(path)
        except BaseException:
            beside.unlink(missing_ok=True)
            raise
        sync_folder(self.folder)
        return digest

    def size(self, digest: str) -> int | None:
        """Returns the size in bytes of the stored job file with this SHA-256; None if it is missing. Raises OSError."""
        try:
            return (self.folder / digest).stat().st_size if _DIGEST.fullmatch(digest) else None
        except FileNotFoundError:
            return None

    def read(self, job: Job) -> dict[str, bytes]:
        """Returns the bytes of a job's files by name. Raises InfrastructureError if one is missing or changed."""
        found: dict[str, bytes] = {}
        for file in job.files:
            try:
                content = (self.folder / file.sha256).read_bytes()
            except OSError as error:
                raise InfrastructureError(
                    f"the file {file.name} cannot be read: {error.strerror}", hint=HINT
                ) from error
            if hashlib.sha256(content).hexdigest() != file.sha256:
                raise InfrastructureError(f"the file {file.name} is not the one that was given any more", hint=HINT)
            found[file.name] = content
        return found

    def sweep(self, named: Collection[str]) -> None:
        """Removes stored files that no job names, and leftovers of interrupted writes. Raises OSError."""
        if self.folder.is_dir():
            for path in sorted(self.folder.iterdir()):
                if path.name not in named:
                    path.unlink()
