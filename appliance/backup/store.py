"""A backup folder: the bytes of every file once, named by SHA-256, and one manifest per backup.

    objects/ab/abcd...              the content of a file
    backups/20261123T020000.json    which files a data folder had, with sizes, modes and digests

Invariants: an object is complete or absent, and a manifest is written once everything it names is on disk. An
interruption or a full disk therefore leaves only complete objects, which the next backup uses, and never half a backup.
Folders are 0700 and files 0600: a backup contains the machine's secret keys. One process at a time writes in a store (a
lock).
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePath, PurePosixPath
from typing import Annotated, Literal, Self

from pydantic import Field, ValidationError, field_validator

from appliance.system.durable_file import sync_folder, write_new
from common.errors import HintedError
from runtime.model import FrozenModel

CHUNK = 1 << 20
NAME = re.compile(r"\d{8}T\d{6}(-\d+)?")
LEFT_OUT = frozenset({"run", "logs", "cluster", "cluster-token", "engine.key"})
"""Files of processes and of this machine's place in a cluster; they are created anew."""
BESIDE = (".sqlite3-wal", ".sqlite3-shm", ".sqlite3-journal", ".partial")
SESSIONS = "gateway/sessions"
"""Gateway sessions, never backed up nor restored: a session that its owner deleted must stay deleted."""
TEMPORARY = ".unfinished-"
Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class BackupError(HintedError):
    """A backup cannot be created, read or restored."""


class NoBackupError(BackupError):
    """The given path or name is not a backup store or backup, or is unsuitable for one."""

    exit_code = 2


class DamagedBackupError(BackupError):
    """A backup differs from what was written."""

    exit_code = 1


class KeptFile(FrozenModel):
    """A file of the backed-up data folder; `mode` has its permission bits."""

    bytes: int = Field(ge=0)
    sha256: Digest
    mode: int = Field(ge=0, le=0o777)


class BackupManifest(FrozenModel):
    """Contents of one backup. `secrets` lists files whose readers could sign or send requests as this machine."""

    format: Literal["assay-backup-1"] = "assay-backup-1"
    created: str
    version: str
    data: str
    schema_revision: str
    head: str
    """The audit log's newest entry, NUMBER:SHA256; empty for a data folder without a log."""
    champion: str
    """Digest of the model in service; empty if none."""
    secrets: tuple[str, ...]
    files: dict[str, KeptFile]
    """Files by path below the data folder."""

    @field_validator("files")
    @classmethod
    def _stay_inside(cls, files: dict[str, KeptFile]) -> dict[str, KeptFile]:
        for name in files:
            path = PurePosixPath(name)
            if path.is_absolute() or not path.parts or ".." in path.parts or str(path) != name or "\0" in name:
                raise ValueError(f"{name!r} is not a path below a folder")
            if is_left_out(path):
                raise ValueError(f"{name!r} is never backed up")
        return files

    @property
    def size(self) -> int:
        """Size of the backed-up data folder in bytes."""
        return sum(one.bytes for one in self.files.values())


class BackupStore:
    """The backup store at `folder`, which `writing` creates if missing."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._objects = folder / "objects"
        self._backups = folder / "backups"

    @contextmanager
    def writing(self) -> Iterator[Self]:
        """Locks the backup store inside the block, creating missing folders and removing leftovers. Raises BackupError
        while another process writes there, or if the folder is something else."""
        if self.folder.exists() and not self._backups.is_dir() and any(self.folder.iterdir()):
            raise NoBackupError(f"{self.folder} is not a backup folder", hint="name an empty folder, or a new one")
        for folder in (self.folder, self._objects, self._backups):
            folder.mkdir(mode=0o700, parents=folder == self.folder, exist_ok=True)
            folder.chmod(0o700)
        lock = os.open(self.folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise BackupError(
                    f"another process writes to {self.folder}", hint="wait until it is done, or name another folder"
                ) from None
            for left in self._objects.glob(f"{TEMPORARY}*"):
                left.unlink()
            yield self
        finally:
            os.close(lock)

    def require(self) -> None:
        """Raises NoBackupError if the folder is not a backup store."""
        if not self._backups.is_dir():
            what = "is not a backup folder" if self.folder.exists() else "does not exist"
            raise NoBackupError(
                f"{self.folder} {what}",
                hint="name the folder that you gave `assay backup create`, or create one with it",
            )

    def names(self) -> list[str]:
        """Returns the names of the store's backups, oldest first."""
        found = self._backups.glob("*.json") if self._backups.is_dir() else ()
        return sorted(one.stem for one in found if NAME.fullmatch(one.stem))

    def manifest(self, name: str | None = None) -> tuple[str, BackupManifest]:
        """Returns name and manifest of a backup in the store, by default the newest. Raises BackupError."""
        names = self.names()
        if not names:
            raise NoBackupError(f"{self.folder} has no backup", hint="`assay backup create FOLDER` creates one")
        wanted = names[-1] if name is None else name
        if wanted not in names:
            raise NoBackupError(f"{self.folder} has no backup {wanted}", hint=f"it has {', '.join(names[-5:])}")
        try:
            return wanted, BackupManifest.model_validate_json((self._backups / f"{wanted}.json").read_bytes())
        except (ValidationError, OSError) as error:
            reason = error.strerror if isinstance(error, OSError) else "invalid format"
            raise DamagedBackupError(
                f"the manifest of the backup {wanted} cannot be read: {reason}", hint="use another backup"
            ) from error

    def put_manifest(self, stamp: str, manifest: BackupManifest) -> str:
        """Completes a backup by writing its manifest, and returns its name. Raises OSError."""
        taken, number, name = set(self.names()), 1, stamp
        while name in taken:
            number += 1
            name = f"{stamp}-{number}"
        write_new(self._backups / f".{name}.new", manifest.model_dump_json(indent=1).encode() + b"\n")
        (self._backups / f".{name}.new").rename(self._backups / f"{name}.json")
        sync_folder(self._backups)
        return name

    def has(self, digest: str, size: int) -> bool:
        """True if the store has a file content with this digest and size; its bytes are not read."""
        path = self.object(digest)
        return path.is_file() and path.stat().st_size == size

    def object(self, digest: str) -> Path:
        return self._objects / digest[:2] / digest

    def put(self, write: Callable[[Path], None]) -> tuple[str, int]:
        """Stores the file that `write` creates in the backup store, named by its SHA-256; returns digest and size.
        Raises what `write` raises."""
        temporary = self._objects / f"{TEMPORARY}{os.getpid()}"
        try:
            os.close(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
            write(temporary)
            digest = digest_of(temporary)
            size = temporary.stat().st_size
            if not self.has(digest, size):
                with temporary.open("rb") as made:
                    os.fsync(made.fileno())
                target = self.object(digest)
                target.parent.mkdir(mode=0o700, exist_ok=True)
                temporary.replace(target)
                sync_folder(target.parent)
        finally:
            temporary.unlink(missing_ok=True)
        return digest, size

    def remove(self, name: str) -> int:
        """Removes a backup and the file contents that no other backup names; returns the bytes freed. Raises
        BackupError if another manifest is unreadable, since it may name any content."""
        self.manifest(name)
        kept = {one.sha256 for other in self.names() if other != name for one in self.manifest(other)[1].files.values()}
        (self._backups / f"{name}.json").unlink()
        sync_folder(self._backups)
        freed = 0
        for path in self._objects.glob("??/*"):
            if path.name not in kept:
                freed += path.stat().st_size
                path.unlink()
        return freed


def is_left_out(path: PurePath) -> bool:
    """True if a path below a data folder is never backed up. That is so for process files, drafts, and SQLite's side
    files, which SQLite would merge."""
    hidden = any(part.startswith(".") for part in path.parts)
    return hidden or path.parts[0] in LEFT_OUT or path.name.endswith(BESIDE) or ".before-migration-from-" in path.name


def digest_of(path: Path) -> str:
    with path.open("rb") as source:
        return hashlib.file_digest(source, "sha256").hexdigest()


def copy(source: Path, target: Path) -> None:
    """Writes the bytes of a regular file into `target`; links are not followed. Raises OSError."""
    handle = os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(handle, "rb") as read, target.open("wb") as out:
        while chunk := read.read(CHUNK):
            out.write(chunk)
        out.flush()
        os.fsync(out.fileno())
