"""Digests of a folder of image files, and their verification.

Invariants: only plain files directly in the folder count, exclusively ours (owner, one name, nobody else may write);
anything else in it, a link, a folder, a device, is a RefusedError and never followed. Files are hashed in blocks on
several threads, so a file's digest is the SHA-256 over the SHA-256 of its blocks.

Manifest of an image on disk: written last, beside the folder of its files, so an image without one is invalid.

    KEY/manifest.json, KEY/image/...

Invariants: a snapshot's key is the SHA-256 over its dependencies, its parent and its files, so a changed manifest no
longer matches its folder's name.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from pydantic import ValidationError

from runtime.errors import InfrastructureError, RefusedError
from runtime.model import FrozenModel
from runtime.profile import Profile

BLOCK_BYTES = 4 << 20
READ_BYTES = 1 << 19
THREADS = 2
HINT = "Remove it and take another; check who else may write there."


class File(NamedTuple):
    name: str
    size: int
    digest: str


def own_folder(folder: Path) -> Path:
    """Creates a folder if missing, and checks that it is exclusively ours. Raises RefusedError if it belongs to another
    user, is writable by others, or could be replaced (a parent belongs to another user or lets anybody rename its
    entries)."""
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        found = folder.lstat()
    except OSError as error:
        raise InfrastructureError(f"{folder} cannot be created: {error}", hint="Choose another folder.") from error
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o022:
        raise RefusedError(
            f"{folder} is writable by other users", hint="Choose another folder: they could change images in it."
        )
    for above in folder.resolve().parents:
        found = above.stat()
        if found.st_uid not in (0, os.geteuid()) or (found.st_mode & 0o002 and not found.st_mode & stat.S_ISVTX):
            raise RefusedError(
                f"{folder} is in {above}, which other users may change",
                hint="Choose another folder: they could replace its images.",
            )
    return folder


def is_in_memory(folder: Path, mountinfo: str) -> bool:
    """True if a folder is on a tmpfs, according to /proc/self/mountinfo (proc(5)). An image there counts against the
    sandbox's memory and cannot be dropped."""
    device = folder.stat().st_dev
    number = f"{os.major(device)}:{os.minor(device)}"
    return any(
        line.split()[2] == number and line.partition(" - ")[2].split()[0] in ("tmpfs", "ramfs")
        for line in mountinfo.splitlines()
    )


def read(folder: Path) -> tuple[File, ...]:
    """Returns size and digest of every file in a snapshot's folder, by name. Blocks (64 MB take about 20 ms); raises
    RefusedError, and OSError."""
    directory = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    opened: dict[str, tuple[int, int]] = {}
    try:
        for name in sorted(entry.name for entry in os.scandir(directory)):
            _open(directory, folder, name, opened)
        blocks = [
            (descriptor, offset)
            for descriptor, size in opened.values()
            for offset in range(0, max(size, 1), BLOCK_BYTES)
        ]
        if len(blocks) > THREADS:
            with ThreadPoolExecutor(THREADS, thread_name_prefix="digest") as threads:
                digests = list(threads.map(_block, blocks))
        else:
            digests = [_block(block) for block in blocks]
    finally:
        for descriptor, _ in opened.values():
            os.close(descriptor)
        os.close(directory)
    whole = {descriptor: hashlib.sha256() for descriptor, _ in opened.values()}
    for (descriptor, _), digest in zip(blocks, digests, strict=True):
        whole[descriptor].update(digest)
    return tuple(File(name, size, whole[descriptor].hexdigest()) for name, (descriptor, size) in opened.items())


def tree_digest(files: tuple[File, ...]) -> str:
    return hashlib.sha256(json.dumps([list(file) for file in files]).encode()).hexdigest()


def flush(path: Path) -> None:
    """Syncs a file, or a folder's entries, to disk. Blocks."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _open(directory: int, folder: Path, name: str, opened: dict[str, tuple[int, int]]) -> None:
    found = os.stat(name, dir_fd=directory, follow_symlinks=False)
    ours = found.st_uid == os.geteuid() and found.st_nlink == 1 and not found.st_mode & 0o022
    if not stat.S_ISREG(found.st_mode) or not ours:
        raise RefusedError(f"{folder} has a foreign file: {name!r}", hint=HINT)
    descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=directory)
    opened[name] = (descriptor, os.fstat(descriptor).st_size)


def _block(block: tuple[int, int]) -> bytes:
    descriptor, offset = block
    state, end = hashlib.sha256(), offset + BLOCK_BYTES
    while offset < end:
        data = os.pread(descriptor, min(READ_BYTES, end - offset), offset)
        if not data:
            break
        state.update(data)
        offset += len(data)
    return state.digest()


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
