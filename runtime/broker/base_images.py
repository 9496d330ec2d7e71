"""Makes golden images: one started and frozen sandbox for each kind, from which all later ones of it are restored.

    FOLDER/KEY/manifest.json, FOLDER/KEY/image/...     by one rename, whole or absent

What always holds: at most one is being looked at or made for a key, however many want one; what was on disk before this
process began is read and compared byte by byte before its first use; a broken or a missing one is made again from the
next fresh start; a backend that cannot restore has none, and its sandboxes start fresh. No user code has run in any.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import os
import re
import shutil
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from runtime.backends.backend import Backend
from runtime.backends.lease import Owner
from runtime.broker import content, manifest
from runtime.broker.manifest import SnapshotManifest
from runtime.broker.store import Background, StoredSnapshot, remove_later
from runtime.errors import RefusedError
from runtime.profile import Profile

log = logging.getLogger(__name__)
UNUSED_DAYS = 30
IMAGES = 32
"""On disk; beyond them the one unused for longest goes."""
SOURCES = 256
AGAIN_SECONDS = 60.0
"""After one could not be made, sandboxes start fresh for so long."""


class ImageState(Enum):
    UNKNOWN = "unknown"
    BUSY = "busy"
    """It is being compared, or made: wait."""
    HERE = "here"
    MISSING = "missing"
    """The next fresh start is to be frozen."""
    NONE = "none"
    """Sandboxes of this kind start fresh."""


@dataclass(frozen=True)
class StartSource:
    """Says what a sandbox is made from: the golden image of its profile, or a snapshot."""

    key: str
    """Of the image; sandboxes of one key are alike."""
    profile: Profile
    backend: Backend
    parts: tuple[str, ...]
    """Empty when its backend cannot restore."""
    snapshot: StoredSnapshot | None = None


class BaseImages:
    def __init__(self, folder: Path, owner: Owner, background: Background) -> None:
        """Raises RefusedError when the folder is not ours alone."""
        self.folder, self._owner, self._background = content.own_folder(folder), owner, background
        self._numbers = itertools.count(1)
        self._sources: dict[Profile, StartSource] = {}
        self._states: dict[str, ImageState] = {}
        self._not_before: dict[str, float] = {}
        self._sweep()

    def source(self, backend: Backend, profile: Profile) -> StartSource:
        """The first time some 40 ms, because runsc is read; then nothing."""
        found = self._sources.get(profile)
        if found is None:
            if len(self._sources) >= SOURCES:  # a client that makes up limits shall not fill the memory with them
                oldest = self._sources.pop(next(iter(self._sources)))
                self._states.pop(oldest.key, None)
                self._not_before.pop(oldest.key, None)
            try:
                parts = backend.image_parts(profile)
            except RefusedError:
                parts = ()
            described = SnapshotManifest(parts=parts or (backend.name,), profile=profile, files=(), uid=os.geteuid())
            found = self._sources[profile] = StartSource(described.key, profile, backend, parts)
        return found

    def state(self, source: StartSource) -> ImageState:
        found = self._states.get(source.key, ImageState.UNKNOWN if source.parts else ImageState.NONE)
        if found is ImageState.NONE and source.parts and time.monotonic() >= self._not_before.get(source.key, 0.0):
            found = self._states[source.key] = ImageState.MISSING
        return found

    def image(self, source: StartSource) -> Path:
        return self.folder / source.key / "image"

    def inspect(self, source: StartSource, done: Callable[[], None]) -> None:
        """Finds out about one that is unknown."""
        self._states[source.key] = ImageState.BUSY
        folder = self.folder / source.key

        def finished(future: Future[bool]) -> None:
            problem = future.exception()
            if problem is not None:
                log.warning("the image of a %s sandbox is made again: %s", source.profile.mode, problem)
                self._discard(folder)
            self._states[source.key] = ImageState.HERE if problem is None and future.result() else ImageState.MISSING
            done()

        self._background(lambda: _is_whole(folder, source), finished)

    def begin(self, source: StartSource) -> None:
        """Notes that the next fresh start will be frozen: nobody else begins with it meanwhile."""
        self._states[source.key] = ImageState.BUSY

    def new_folder(self) -> Path:
        """Makes a folder to freeze a box into. Raises OSError."""
        new = self.folder / f"new-{self._owner}-{next(self._numbers)}"
        (new / "image").mkdir(parents=True, mode=0o700)
        return new

    def keep(self, source: StartSource, new: Path, done: Callable[[], None]) -> None:
        """Gives what was frozen its name."""

        def finished(future: Future[None]) -> None:
            problem = future.exception()
            if problem is None:
                self._states[source.key] = ImageState.HERE
                self._sweep()
            else:
                self.cannot(source, problem)
            done()

        self._background(lambda: _put(new, self.folder / source.key, source), finished)

    def cannot(self, source: StartSource, problem: BaseException) -> None:
        """Notes that it could not be made now."""
        log.warning("sandboxes start fresh for a while, because no image could be made: %s", problem)
        self._states[source.key] = ImageState.NONE
        self._not_before[source.key] = time.monotonic() + AGAIN_SECONDS

    def abandon(self, source: StartSource, new: Path, problem: BaseException) -> None:
        """Notes that it could not be frozen into that folder."""
        self.cannot(source, problem)
        remove_later(new, self._background)

    def drop(self, source: StartSource, problem: BaseException) -> None:
        """Throws it away because no sandbox could be restored from it: the next fresh start makes another. What it
        depends on is looked at again, in case the programs were replaced under us."""
        self._sources.pop(source.profile, None)
        if self.state(source) is ImageState.HERE:
            log.warning("the image of a %s sandbox is thrown away: %s", source.profile.mode, problem)
            self._states[source.key] = ImageState.MISSING
            self._discard(self.folder / source.key)

    def _sweep(self) -> None:
        """Removes what dead brokers were making, what nobody has used for long, and the oldest of too many."""
        images: list[tuple[float, Path]] = []
        for entry in self.folder.iterdir():
            making = re.fullmatch(r"new-(.+)-\d+", entry.name)
            owner = Owner.parse(making[1]) if making is not None else None
            with contextlib.suppress(FileNotFoundError):  # another broker sweeps here too
                if owner is None:
                    images.append((entry.stat().st_mtime, entry))
                elif not owner.alive():
                    shutil.rmtree(entry)
        oldest = time.time() - UNUSED_DAYS * 86_400
        for rank, (used, entry) in enumerate(sorted(images, reverse=True)):
            if used < oldest or rank >= IMAGES:
                with contextlib.suppress(FileNotFoundError):
                    shutil.rmtree(entry)

    def _discard(self, folder: Path) -> None:
        gone = self.folder / f"new-{self._owner}-{next(self._numbers)}"
        with contextlib.suppress(FileNotFoundError):
            folder.rename(gone)
            remove_later(gone, self._background)


def _is_whole(folder: Path, source: StartSource) -> bool:
    found = manifest.load(folder) if folder.is_dir() else None
    if found is None:
        return False
    if found.parts != source.parts or found.profile != source.profile:
        raise RefusedError("its manifest names another kind")
    manifest.verify(folder, found)
    os.utime(folder)
    return True


def _put(new: Path, target: Path, source: StartSource) -> None:
    found = SnapshotManifest(
        parts=source.parts, profile=source.profile, files=content.read(new / "image"), uid=os.geteuid(), label="golden"
    )
    manifest.write(new, found)
    try:
        new.rename(target)
    except OSError:
        try:
            if _is_whole(target, source):  # another broker was first, and its image is as good
                shutil.rmtree(new)
                return
        except RefusedError as error:
            log.warning("the image in %s is replaced: %s", target, error)
        shutil.rmtree(target)
        new.rename(target)
