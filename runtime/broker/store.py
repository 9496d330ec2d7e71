"""Snapshot store: takes, keeps, finds again after a restart, and forgets snapshots.

    FOLDER/durable/KEY         until forgotten
    FOLDER/live/OWNER/KEY      while a connection refers to them; swept once the owner is dead
    FOLDER/live/OWNER/new-N    being written, or being removed

Invariants: a snapshot appears by one rename, complete; only the user who took it sees it, and to others it is
indistinguishable from a missing one; a snapshot not written by this process is verified byte by byte before first use;
a forgotten one is available only to connections that already referred to it, and goes with its broker at the latest,
however that ends; quota and free space are respected. Everything but reading and writing happens on the reactor.
"""

from __future__ import annotations

import contextlib
import datetime
import itertools
import logging
import os
import re
import shutil
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from runtime.backends.lease import Owner
from runtime.broker import content
from runtime.broker.content import SnapshotManifest
from runtime.errors import BadRequestError, InfrastructureError, LimitError, SandboxError

log = logging.getLogger(__name__)
KEY = re.compile(r"[0-9a-f]{64}")
FORGOTTEN = "forgotten"
"""File beside the manifest of a durable snapshot that was forgotten while referenced: its owner's name."""
INNER = 0
"""Holder number of the broker's own references; connections start at 1."""


class Background(Protocol):
    def __call__(self, job: Callable[[], Any], done: Callable[[Future[Any]], None]) -> object:
        """Runs the job on another thread; `done` is called back on the reactor."""


@dataclass(eq=False)
class StoredSnapshot:
    """Snapshot in the broker's store."""

    key: str
    manifest: SnapshotManifest
    folder: Path
    durable: bool
    verified: bool
    holders: dict[int, int] = field(default_factory=dict)
    """Reference counts by connection number."""
    forgotten: bool = False
    """True if it is removed with its last reference, durable or not."""
    waiting: list[Callable[[SandboxError | None], None]] = field(default_factory=list)
    """Callbacks waiting for its verification."""

    @property
    def image(self) -> Path:
        return self.folder / "image"


@dataclass(frozen=True)
class PendingSnapshot:
    """Snapshot that is being taken, not yet in the store."""

    folder: Path
    manifest: SnapshotManifest
    """Manifest without files and creation time."""
    durable: bool
    expected: int
    """Reserved size, in bytes."""

    @property
    def image(self) -> Path:
        return self.folder / "image"


OnStored = Callable[[StoredSnapshot | SandboxError], None]


class Store:
    def __init__(self, folder: Path, owner: Owner, background: Background, *, most_mib: int, free_mib: int) -> None:
        """Opens the snapshot store: removes snapshots of dead brokers and finds durable ones. Raises RefusedError
        unless the folder is exclusively ours, InfrastructureError on a disk error."""
        self.folder, self._background = content.own_folder(folder), background
        self._durable = content.own_folder(folder / "durable")
        self._owner, self._live = owner, content.own_folder(folder / "live") / str(owner)
        self._most, self._free = most_mib << 20, free_mib << 20
        self._numbers = itertools.count(1)
        self._known: dict[str, StoredSnapshot] = {}
        self._reserved = 0
        self.removed: Callable[[str], None] = lambda _key: None
        """Called with the key of a removed snapshot."""
        sweep(folder)
        content.own_folder(self._live)
        for entry in sorted(self._durable.iterdir()):
            if KEY.fullmatch(entry.name):
                self._find(entry)

    @property
    def bytes(self) -> int:
        """Total size of all snapshots in the store, including space reserved for pending ones, in bytes."""
        return sum(snapshot.manifest.bytes for snapshot in self._known.values()) + self._reserved

    def __len__(self) -> int:
        return len(self._known)

    def get(self, key: str, uid: int, holder: int) -> StoredSnapshot:
        """Returns a snapshot of the store. Raises BadRequestError if this user may not see it, or if it was forgotten
        before this connection referred to it."""
        snapshot = self._known.get(key)
        if snapshot is None and KEY.fullmatch(key):
            self._find(self._durable / key)  # another broker may have put it there
            snapshot = self._known.get(key)
        if snapshot is None or snapshot.manifest.uid != uid or (snapshot.forgotten and holder not in snapshot.holders):
            raise BadRequestError(f"unknown snapshot {key[:12]}", hint="Take another: this one was forgotten.")
        return snapshot

    def all(self) -> list[StoredSnapshot]:
        return list(self._known.values())

    def seen_by(self, uid: int) -> list[StoredSnapshot]:
        return [snapshot for snapshot in self._known.values() if snapshot.manifest.uid == uid]

    def begin(self, described: SnapshotManifest, *, durable: bool, expected: int) -> PendingSnapshot:
        """Creates a folder for a snapshot of `expected` bytes; `described` names none. Raises LimitError if full."""
        if self.bytes + expected > self._most:
            raise LimitError(
                f"snapshots already use {self.bytes >> 20} of {self._most >> 20} MiB",
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
            raise InfrastructureError(f"cannot store a snapshot in {self._live}: {error}") from error
        self._reserved += expected
        return PendingSnapshot(folder, described, durable, expected)

    def abandon(self, pending: PendingSnapshot) -> None:
        """Drops a pending snapshot that could not be frozen, with its folder and reserved space."""
        self._reserved -= pending.expected
        remove_later(pending.folder, self._background)

    def finish(self, pending: PendingSnapshot, holder: int, done: OnStored) -> None:
        """Publishes a frozen snapshot in the store; calls back once it is there, referenced by `holder`."""

        def finished(future: Future[SnapshotManifest]) -> None:
            self._reserved -= pending.expected
            try:
                snapshot = self._admit(pending, future.result())
            except (SandboxError, OSError) as error:
                remove_later(pending.folder, self._background)
                if not isinstance(error, SandboxError):
                    error = InfrastructureError(f"the snapshot could not be kept: {error}", hint="Free disk space.")
                done(error)
                return
            self.refer(snapshot, holder)
            if pending.durable:  # its name is on the disk before anybody relies on it
                self._background(lambda: content.flush(self._durable), lambda flushed: settled(snapshot, flushed))
            else:
                done(snapshot)

        def settled(snapshot: StoredSnapshot, flushed: Future[None]) -> None:
            problem = flushed.exception()
            done(snapshot if problem is None else InfrastructureError(f"the snapshot could not be kept: {problem}"))

        self._background(lambda: _describe(pending), finished)

    def check(self, snapshot: StoredSnapshot, done: Callable[[SandboxError | None], None]) -> None:
        """Verifies a snapshot's files and calls back with None or an error; immediately if it was verified before."""
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

        self._background(lambda: content.verify(snapshot.folder, snapshot.manifest), finished)

    def refer(self, snapshot: StoredSnapshot, holder: int) -> None:
        snapshot.holders[holder] = snapshot.holders.get(holder, 0) + 1

    def release(self, snapshot: StoredSnapshot, holder: int) -> None:
        """Drops one of a connection's references to a snapshot."""
        left = snapshot.holders.get(holder, 0) - 1
        if left > 0:
            snapshot.holders[holder] = left
        else:
            snapshot.holders.pop(holder, None)
            self._collect(snapshot)

    def forget(self, snapshot: StoredSnapshot, holder: int) -> None:
        """Forgets a snapshot for this connection; removes it from disk with its last reference."""
        snapshot.holders.pop(holder, None)
        if snapshot.durable and not snapshot.forgotten and snapshot.holders:
            try:
                (snapshot.folder / FORGOTTEN).write_text(str(self._owner))
            except OSError as error:
                log.warning("snapshot %s will reappear after a restart: %s", snapshot.key[:12], error)
        snapshot.forgotten = True
        self._collect(snapshot)

    def hung_up(self, holder: int) -> None:
        """Drops all of a connection's references to snapshots."""
        for snapshot in list(self._known.values()):
            if snapshot.holders.pop(holder, None) is not None:
                self._collect(snapshot)

    def sweep(self) -> int:
        """Removes non-durable snapshots of dead brokers; returns the number of brokers. Callable on any thread."""
        return sweep(self.folder)

    def close(self) -> None:
        """Removes all non-durable snapshots from the store. Blocks; must be the last call."""
        shutil.rmtree(self._live)

    def _collect(self, snapshot: StoredSnapshot) -> None:
        unwanted = snapshot.forgotten or not snapshot.durable
        if unwanted and not snapshot.holders and self._known.get(snapshot.key) is snapshot:
            del self._known[snapshot.key]
            gone = self._live / f"new-{next(self._numbers)}"
            try:
                snapshot.folder.rename(gone)
            except OSError as error:
                log.warning("snapshot %s cannot be removed: %s", snapshot.key[:12], error)
            else:
                remove_later(gone, self._background)
            self.removed(snapshot.key)

    def _admit(self, pending: PendingSnapshot, found: SnapshotManifest) -> StoredSnapshot:
        """Adds a finished snapshot to the store, where clients can use it."""
        if self.bytes + found.bytes > self._most:
            raise LimitError(
                f"the snapshot of {found.bytes >> 20} MiB does not fit: snapshots already use {self.bytes >> 20} of "
                f"{self._most >> 20} MiB",
                hint="Forget some, or allow more (snapshots_mib).",
            )
        known = self._known.get(found.key)
        if known is not None and known.manifest.uid == found.uid and (known.durable or not pending.durable):
            remove_later(pending.folder, self._background)  # the very same state was kept before
            if pending.durable and known.forgotten:  # and is wanted again
                (known.folder / FORGOTTEN).unlink(missing_ok=True)
                known.forgotten = False
            return known
        target = (self._durable if pending.durable else self._live) / found.key
        if known is not None or target.exists():
            raise InfrastructureError("this state is already in the store, stored differently")
        pending.folder.rename(target)
        snapshot = self._known[found.key] = StoredSnapshot(found.key, found, target, pending.durable, verified=True)
        return snapshot

    def _find(self, folder: Path) -> None:
        if (folder / FORGOTTEN).exists():
            self._remove_if_unowned(folder)
            return
        try:
            found = content.load(folder)
            if found is None:
                return
            if found.key != folder.name:
                raise BadRequestError("its manifest does not match its name")
        except SandboxError as error:
            log.warning("unusable snapshot in %s, remove it by hand: %s", folder, error)
            return
        self._known[folder.name] = StoredSnapshot(folder.name, found, folder, durable=True, verified=False)

    def _remove_if_unowned(self, folder: Path) -> None:
        """Removes a forgotten snapshot's folder unless a live broker still needs it."""
        try:
            owner = Owner.parse((folder / FORGOTTEN).read_text())
            if owner is None or not owner.alive():
                gone = self._live / f"new-{next(self._numbers)}"
                folder.rename(gone)
                remove_later(gone, self._background)
        except FileNotFoundError:  # somebody else was first
            return
        except OSError as error:
            log.warning("the forgotten snapshot in %s cannot be removed: %s", folder, error)


def sweep(folder: Path) -> int:
    """Removes non-durable snapshots of dead brokers from a store's folder; returns the number of these brokers."""
    found = 0
    for entry in sorted((folder / "live").iterdir()) if (folder / "live").is_dir() else ():
        owner = Owner.parse(entry.name)
        if owner is None or owner.alive():
            continue
        found += 1
        with contextlib.suppress(FileNotFoundError):  # somebody else sweeps here too
            shutil.rmtree(entry)
    return found


def _describe(pending: PendingSnapshot) -> SnapshotManifest:
    """Reads a frozen snapshot's files, writes their manifest and returns it; on another thread."""
    created = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    found = pending.manifest.model_copy(update={"files": content.read(pending.image), "created": created})
    content.write(pending.folder, found)
    if pending.durable:
        for path in (*pending.image.iterdir(), pending.image, pending.folder / content.NAME, pending.folder):
            content.flush(path)
    return found


def remove_later(folder: Path, background: Background) -> None:
    """Removes a folder in the background; logs a failure."""

    def removed(future: Future[None]) -> None:
        problem = future.exception()
        if problem is not None:
            log.warning("%s cannot be removed: %s", folder, problem)

    background(lambda: shutil.rmtree(folder), removed)
