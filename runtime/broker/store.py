"""The store of snapshots: taken, kept, found again after a restart, forgotten.

    FOLDER/durable/KEY         until somebody forgets them
    FOLDER/live/OWNER/KEY      while a connection refers to them; an owner that is dead is swept
    FOLDER/live/OWNER/new-N    being written, or being removed

What always holds: a snapshot appears by one rename, whole; only the user who took it sees it, and nobody who may not
can tell it from one that does not exist; one that was not written by this process is read and compared byte by byte
before its first use; quota and free space are kept. Everything but the reading and writing happens on the reactor.
"""

from __future__ import annotations

import contextlib
import datetime
import itertools
import logging
import os
import re
import shutil
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from runtime.backends.owner import Owner
from runtime.broker import content, manifest
from runtime.broker.manifest import Manifest
from runtime.errors import BadRequestError, InfrastructureError, LimitError, SandboxError
from runtime.profile import Profile

log = logging.getLogger(__name__)
KEY = re.compile(r"[0-9a-f]{64}")
INNER = 0
"""The broker's own references, beside those of connections, whose numbers begin at 1."""


class Background(Protocol):
    def __call__(self, job: Callable[[], Any], done: Callable[[Future[Any]], None]) -> object:
        """Runs the job on another thread; `done` is called back on the reactor."""
        ...


@dataclass(eq=False)
class Snapshot:
    """One in the store."""

    key: str
    manifest: Manifest
    folder: Path
    durable: bool
    verified: bool
    holders: dict[int, int] = field(default_factory=dict)
    """References by number of connection."""
    forgotten: bool = False
    """It goes when nobody refers to it any more, durable or not."""
    waiting: list[Callable[[SandboxError | None], None]] = field(default_factory=list)
    """For its bytes to be compared."""

    @property
    def image(self) -> Path:
        return self.folder / "image"


@dataclass(frozen=True)
class Wanted:
    """A snapshot that is being taken."""

    folder: Path
    profile: Profile
    parts: tuple[str, ...]
    parent: str
    uid: int
    label: str
    durable: bool
    expected: int
    """Bytes set aside for it."""

    @property
    def image(self) -> Path:
        return self.folder / "image"


Kept = Callable[[Snapshot | SandboxError], None]


class Store:
    def __init__(self, folder: Path, owner: Owner, background: Background, *, most_mib: int, free_mib: int) -> None:
        """Sweeps what dead owners left and finds the durable ones. Raises RefusedError when the folder is not ours
        alone, InfrastructureError when the disk does not take it."""
        self.folder, self._background = content.own_folder(folder), background
        self._durable = content.own_folder(folder / "durable")
        self._live = content.own_folder(folder / "live") / str(owner)
        self._most, self._free = most_mib << 20, free_mib << 20
        self._numbers = itertools.count(1)
        self._known: dict[str, Snapshot] = {}
        self._reserved = 0
        self.removed: Callable[[str], None] = lambda _key: None
        """Called with the key of one that is gone."""
        sweep(folder)
        content.own_folder(self._live)
        for entry in sorted(self._durable.iterdir()):
            if KEY.fullmatch(entry.name):
                self._find(entry)

    @property
    def bytes(self) -> int:
        """Of all snapshots, and set aside for those that are being taken."""
        return sum(snapshot.manifest.bytes for snapshot in self._known.values()) + self._reserved

    def __len__(self) -> int:
        return len(self._known)

    def get(self, key: str, uid: int) -> Snapshot:
        """Raises BadRequestError when there is none that this user may see."""
        snapshot = self._known.get(key)
        if snapshot is None and KEY.fullmatch(key):
            self._find(self._durable / key)  # another broker may have put it there
            snapshot = self._known.get(key)
        if snapshot is None or snapshot.manifest.uid != uid or (snapshot.forgotten and not snapshot.holders):
            raise BadRequestError(f"there is no snapshot {key[:12]}", hint="It was forgotten, or its taker has gone.")
        return snapshot

    def all(self) -> list[Snapshot]:
        return list(self._known.values())

    def seen_by(self, uid: int) -> list[Snapshot]:
        return [snapshot for snapshot in self._known.values() if snapshot.manifest.uid == uid]

    def begin(
        self,
        profile: Profile,
        parts: tuple[str, ...],
        *,
        parent: str,
        uid: int,
        label: str,
        durable: bool,
        expected: int,
    ) -> Wanted:
        """A folder to freeze a sandbox into, of `expected` bytes. Raises LimitError when there is no room."""
        if self.bytes + expected > self._most:
            raise LimitError(
                f"the snapshots have {self.bytes >> 20} MiB of {self._most >> 20} already",
                hint="Forget some, or allow more (snapshots_mib).",
            )
        try:
            disk = os.statvfs(self._live)
            if disk.f_bavail * disk.f_frsize - self._reserved - expected < self._free:
                raise LimitError(
                    f"a snapshot would leave less than {self._free >> 20} MiB of disk space",
                    hint="Free some, or forget snapshots.",
                )
            folder = self._live / f"new-{next(self._numbers)}"
            folder.mkdir(mode=0o700)
            (folder / "image").mkdir(mode=0o700)
        except OSError as error:
            raise InfrastructureError(f"no snapshot can be kept in {self._live}: {error}") from error
        self._reserved += expected
        return Wanted(folder, profile, parts, parent, uid, label, durable, expected)

    def abandon(self, wanted: Wanted) -> None:
        """It could not be frozen."""
        self._reserved -= wanted.expected
        self._remove_folder(wanted.folder)

    def finish(self, wanted: Wanted, holder: int, done: Kept) -> None:
        """Gives what was frozen its name; calls back once it is in the store, referred to by `holder`."""

        def finished(future: Future[Manifest]) -> None:
            self._reserved -= wanted.expected
            try:
                found = future.result()
                snapshot = self._admit(wanted, found)
            except SandboxError as error:
                self._remove_folder(wanted.folder)
                done(error)
                return
            except OSError as error:
                self._remove_folder(wanted.folder)
                done(InfrastructureError(f"the snapshot could not be kept: {error}", hint="Free disk space."))
                return
            self.refer(snapshot, holder)
            if wanted.durable:  # its name is on the disk before anybody relies on it
                self._background(lambda: content.flush(self._durable), lambda flushed: settled(snapshot, flushed))
            else:
                done(snapshot)

        def settled(snapshot: Snapshot, flushed: Future[None]) -> None:
            problem = flushed.exception()
            done(snapshot if problem is None else InfrastructureError(f"the snapshot could not be kept: {problem}"))

        self._background(lambda: _describe(wanted), finished)

    def check(self, snapshot: Snapshot, done: Callable[[SandboxError | None], None]) -> None:
        """Calls back with None once it is known to be what was written; at once when it is known already."""
        if snapshot.verified:
            done(None)
            return
        snapshot.waiting.append(done)
        if len(snapshot.waiting) > 1:
            return

        def finished(future: Future[None]) -> None:
            waiting, snapshot.waiting = snapshot.waiting, []
            problem = future.exception()
            if problem is not None and not isinstance(problem, SandboxError):
                problem = InfrastructureError(f"snapshot {snapshot.key[:12]} cannot be read: {problem}")
            snapshot.verified = problem is None
            for each in waiting:
                each(problem)

        self._background(lambda: manifest.verify(snapshot.folder, snapshot.manifest), finished)

    def refer(self, snapshot: Snapshot, holder: int) -> None:
        snapshot.holders[holder] = snapshot.holders.get(holder, 0) + 1

    def release(self, snapshot: Snapshot, holder: int) -> None:
        """One reference less."""
        left = snapshot.holders.get(holder, 0) - 1
        if left > 0:
            snapshot.holders[holder] = left
        else:
            snapshot.holders.pop(holder, None)
            self._collect(snapshot)

    def forget(self, snapshot: Snapshot, holder: int) -> None:
        """Gone for this connection now; from the disk once nobody else refers to it."""
        snapshot.forgotten = True
        snapshot.holders.pop(holder, None)
        self._collect(snapshot)

    def hung_up(self, holder: int) -> None:
        """This connection refers to nothing any more."""
        for snapshot in list(self._known.values()):
            if snapshot.holders.pop(holder, None) is not None:
                self._collect(snapshot)

    def sweep(self) -> int:
        """As `sweep`; on any thread."""
        return sweep(self.folder)

    def close(self) -> None:
        """Removes all that is not durable. Blocks; nothing else is called afterwards."""
        shutil.rmtree(self._live)

    def _collect(self, snapshot: Snapshot) -> None:
        unwanted = snapshot.forgotten or not snapshot.durable
        if unwanted and not snapshot.holders and self._known.get(snapshot.key) is snapshot:
            del self._known[snapshot.key]
            gone = self._live / f"new-{next(self._numbers)}"
            try:
                snapshot.folder.rename(gone)
            except OSError as error:
                log.warning("snapshot %s cannot be removed: %s", snapshot.key[:12], error)
            else:
                self._remove_folder(gone)
            self.removed(snapshot.key)

    def _admit(self, wanted: Wanted, found: Manifest) -> Snapshot:
        """From now on it can be asked for."""
        if self.bytes + found.bytes > self._most:
            raise LimitError(
                f"the snapshot of {found.bytes >> 20} MiB does not fit beside the others: {self.bytes >> 20} MiB of "
                f"{self._most >> 20} are taken",
                hint="Forget some, or allow more (snapshots_mib).",
            )
        known = self._known.get(found.key)
        if known is not None and known.manifest.uid == wanted.uid and (known.durable or not wanted.durable):
            self._remove_folder(wanted.folder)  # the very same state was kept before
            return known
        target = (self._durable if wanted.durable else self._live) / found.key
        if known is not None or target.exists():
            raise InfrastructureError("the very same state is in the store already, kept differently")
        wanted.folder.rename(target)
        snapshot = self._known[found.key] = Snapshot(found.key, found, target, wanted.durable, verified=True)
        return snapshot

    def _find(self, folder: Path) -> None:
        try:
            found = manifest.load(folder)
            if found is None:
                return
            if found.key != folder.name:
                raise BadRequestError("its manifest does not fit its name")
        except SandboxError as error:
            log.warning("the snapshot in %s cannot be used; remove it by hand: %s", folder, error)
            return
        self._known[folder.name] = Snapshot(folder.name, found, folder, durable=True, verified=False)

    def _remove_folder(self, folder: Path) -> None:
        self._background(lambda: shutil.rmtree(folder), _say_if_failed)


def sweep(folder: Path) -> int:
    """Removes what brokers that are dead had not kept for good; how many there were."""
    found = 0
    for entry in sorted((folder / "live").iterdir()) if (folder / "live").is_dir() else ():
        owner = Owner.parse(entry.name)
        if owner is None or owner.alive():
            continue
        found += 1
        with contextlib.suppress(FileNotFoundError):  # somebody else sweeps here too
            shutil.rmtree(entry)
    return found


def _describe(wanted: Wanted) -> Manifest:
    """Reads what was frozen and writes its manifest; on another thread."""
    files = content.read(wanted.image)
    created = datetime.datetime.fromtimestamp(time.time(), datetime.UTC).isoformat(timespec="seconds")
    found = Manifest(
        parts=wanted.parts,
        profile=wanted.profile,
        parent=wanted.parent,
        files=files,
        uid=wanted.uid,
        label=wanted.label,
        created=created,
    )
    manifest.write(wanted.folder, found)
    if wanted.durable:
        for path in (*wanted.image.iterdir(), wanted.image, wanted.folder / manifest.NAME, wanted.folder):
            content.flush(path)
    return found


def _say_if_failed(future: Future[Any]) -> None:
    problem = future.exception()
    if problem is not None:
        log.warning("the store of snapshots: %s", problem)
