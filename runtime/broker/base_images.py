"""Golden images: one started and frozen sandbox per kind, from which later ones are restored.

    FOLDER/KEY/manifest.json, FOLDER/KEY/image/...     by one rename, complete or absent

Invariants: at most one image per key is being checked or made at a time; images from before this process are compared
byte by byte before first use; a broken or missing image is made again from the next fresh start; a backend without
restore has none, and its sandboxes start fresh. No user code has run in any image.
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
from runtime.broker import content
from runtime.broker.content import SnapshotManifest
from runtime.broker.store import Background, StoredSnapshot, remove_later
from runtime.errors import RefusedError
from runtime.profile import Profile

log = logging.getLogger(__name__)
UNUSED_DAYS = 30
IMAGES = 32
"""Most images on disk; beyond that the least recently used goes."""
SOURCES = 256
AGAIN_SECONDS = 60.0
"""Time for which sandboxes start fresh after a failure to make an image, in seconds."""


class ImageState(Enum):
    UNKNOWN = "unknown"
    BUSY = "busy"
    """Being checked or made: wait."""
    HERE = "here"
    MISSING = "missing"
    """The next fresh start is frozen."""
    NONE = "none"
    """Sandboxes of this kind start fresh."""


@dataclass(frozen=True)
class StartSource:
    """Source of a sandbox: the golden image of its profile, or a snapshot."""

    key: str
    """Key of the image; sandboxes of one key are interchangeable."""
    profile: Profile
    backend: Backend
    parts: tuple[str, ...]
    """Dependencies of the image; empty if its backend cannot restore."""
    snapshot: StoredSnapshot | None = None


class BaseImages:
    def __init__(self, folder: Path, owner: Owner, background: Background) -> None:
        """Opens the folder of golden images, removes old ones. Raises RefusedError unless it is exclusively ours."""
        self.folder, self._owner, self._background = content.own_folder(folder), owner, background
        self._numbers = itertools.count(1)
        self._sources: dict[Profile, StartSource] = {}
        self._states: dict[str, ImageState] = {}
        self._not_before: dict[str, float] = {}
        self._sweep()

    def source(self, backend: Backend, profile: Profile) -> StartSource:
        """Returns the start source of a profile's sandboxes: its golden image, if the backend can. Takes some 40 ms at
        first, because runsc is hashed."""
        found = self._sources.get(profile)
        if found is None:
            if len(self._sources) >= SOURCES:  # a client that invents limits must not fill the memory
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
        """Checks in the background if a golden image is complete, discards a broken one, and then calls `done`."""
        self._states[source.key] = ImageState.BUSY
        folder = self.folder / source.key

        def finished(future: Future[bool]) -> None:
            problem = future.exception()
            if problem is not None:
                log.warning("recreating the golden image of a %s sandbox: %s", source.profile.mode, problem)
                self._discard(folder)
            self._states[source.key] = ImageState.HERE if problem is None and future.result() else ImageState.MISSING
            done()

        self._background(lambda: _is_whole(folder, source), finished)

    def begin(self, source: StartSource) -> None:
        """Marks a golden image as being made: the next fresh start is frozen for it, and no other."""
        self._states[source.key] = ImageState.BUSY

    def new_folder(self) -> Path:
        """Creates and returns a folder to freeze a box into. Raises OSError."""
        new = self.folder / f"new-{self._owner}-{next(self._numbers)}"
        (new / "image").mkdir(parents=True, mode=0o700)
        return new

    def keep(self, source: StartSource, new: Path, done: Callable[[], None]) -> None:
        """Publishes a frozen box in the folder `new` as the golden image of its source."""

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
        """Records that a golden image could not be made now."""
        log.warning("sandboxes start fresh for a while, because no golden image could be created: %s", problem)
        self._states[source.key] = ImageState.NONE
        self._not_before[source.key] = time.monotonic() + AGAIN_SECONDS

    def abandon(self, source: StartSource, new: Path, problem: BaseException) -> None:
        """Records that freezing a golden image into that folder failed, and removes the folder."""
        self.cannot(source, problem)
        remove_later(new, self._background)

    def drop(self, source: StartSource, problem: BaseException) -> None:
        """Discards a golden image from which no sandbox could be restored: the next fresh start makes another.
        Dependencies are read again, in case the programs were replaced."""
        self._sources.pop(source.profile, None)
        if self.state(source) is ImageState.HERE:
            log.warning("discarding the golden image of a %s sandbox: %s", source.profile.mode, problem)
            self._states[source.key] = ImageState.MISSING
            self._discard(self.folder / source.key)

    def _sweep(self) -> None:
        """Removes unfinished golden images of dead brokers, images unused for long, and the oldest of too many."""
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
    found = content.load(folder) if folder.is_dir() else None
    if found is None:
        return False
    if found.parts != source.parts or found.profile != source.profile:
        raise RefusedError("its manifest is of another kind")
    content.verify(folder, found)
    os.utime(folder)
    return True


def _put(new: Path, target: Path, source: StartSource) -> None:
    found = SnapshotManifest(
        parts=source.parts, profile=source.profile, files=content.read(new / "image"), uid=os.geteuid(), label="golden"
    )
    content.write(new, found)
    try:
        new.rename(target)
    except OSError:
        try:
            if _is_whole(target, source):  # another broker was first, with an equivalent image
                shutil.rmtree(new)
                return
        except RefusedError as error:
            log.warning("replacing the image in %s: %s", target, error)
        shutil.rmtree(target)
        new.rename(target)
