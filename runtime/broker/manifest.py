"""Manifest of an image on disk: written last, beside the folder of its files, so an image without one is invalid.

    KEY/manifest.json, KEY/image/...

Invariants: a snapshot's key is the SHA-256 over its dependencies, its parent and its files, so a changed manifest no
longer matches its folder's name.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from pathlib import Path

from pydantic import ValidationError

from runtime.broker.content import HINT, File, read, tree_digest
from runtime.errors import RefusedError
from runtime.model import FrozenModel
from runtime.profile import Profile

FORMAT = 1
NAME = "manifest.json"
MANIFEST_BYTES = 1 << 16


class SnapshotManifest(FrozenModel):
    format: int = FORMAT
    parts: tuple[str, ...]
    """Dependencies reported by its backend."""
    profile: Profile
    parent: str = ""
    """Snapshot from which its sandbox came; empty for a golden image."""
    files: tuple[File, ...]
    uid: int
    """Owner: the user at the other end of the requesting connection."""
    label: str = ""
    created: str = ""
    """Creation time, in UTC."""

    @property
    def bytes(self) -> int:
        return sum(file.size for file in self.files)

    @property
    def key(self) -> str:
        """Key that identifies the snapshot. Excludes label and owner, and profile fields with default values, so that a
        later version with more fields still recognizes it."""
        profile = self.profile.model_dump_json(exclude_defaults=True)
        depends = [self.format, self.parts, profile, self.parent, tree_digest(self.files)]
        return hashlib.sha256(json.dumps(depends).encode()).hexdigest()


def write(folder: Path, manifest: SnapshotManifest) -> None:
    """Writes a snapshot's manifest by one rename, so that it is complete or absent. Raises OSError."""
    new = folder / f".{NAME}"
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(manifest.model_dump_json())
    new.rename(folder / NAME)


def load(folder: Path) -> SnapshotManifest | None:
    """Reads a snapshot's manifest; None if absent. Raises RefusedError if it is not exclusively ours, or invalid."""
    try:
        descriptor = os.open(folder / NAME, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise RefusedError(f"{folder / NAME} is not a manifest: {error}", hint=HINT) from error
    with os.fdopen(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o022:
            raise RefusedError(f"{folder / NAME} is writable by other users", hint=HINT)
        data = file.read(MANIFEST_BYTES + 1)
    try:
        manifest = SnapshotManifest.model_validate_json(data)
    except ValidationError as error:
        raise RefusedError(f"{folder / NAME} is not a manifest: {error.error_count()} errors", hint=HINT) from error
    if manifest.format != FORMAT:
        raise RefusedError(f"{folder / NAME} has format {manifest.format}, not {FORMAT}", hint=HINT)
    return manifest


def verify(folder: Path, manifest: SnapshotManifest) -> None:
    """Compares every byte of a snapshot's files with its manifest. Blocks; raises RefusedError for a difference."""
    try:
        found = read(folder / "image")
    except OSError as error:
        raise RefusedError(f"the files of {folder.name} cannot be read: {error}", hint=HINT) from error
    if found != manifest.files:
        raise RefusedError(f"{folder.name} was changed on disk", hint=HINT)
