"""Golden images: one started and frozen sandbox for each kind, from which all later ones of it are restored.

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
from enum import Enum
from pathlib import Path
from typing import NamedTuple

from runtime.backends.backend import Backend
from runtime.backends.owner import Owner
from runtime.broker import content, manifest
from runtime.broker.manifest import Manifest
from runtime.broker.store import Background
from runtime.errors import RefusedError
from runtime.profile import Profile

log = logging.getLogger(__name__)
UNUSED_DAYS = 30
IMAGES = 32
"""On disk; beyond them the one unused for longest goes."""
KINDS = 256
AGAIN_SECONDS = 60.0
"""After one could not be made, sandboxes start fresh for so long."""


class Standing(Enum):
    UNKNOWN = "unknown"
    BUSY = "busy"
    """It is being compared, or made: wait."""
    HERE = "here"
    MISSING = "missing"
    """The next fresh start is to be frozen."""
    NONE = "none"
    """Sandboxes of this kind start fresh."""


class Kind(NamedTuple):
    """What sandboxes of one profile come from."""

    key: str
    profile: Profile
    backend: Backend
    parts: tuple[str, ...]
    """Empty when its backend cannot restore."""


class Golden:
    def __init__(self, folder: Path, owner: Owner, background: Background) -> None:
        """Raises RefusedError when the folder is not ours alone."""
        self.folder, self._owner, self._background = content.own_folder(folder), owner, background
        self._numbers = itertools.count(1)
        self._kinds: dict[Profile, Kind] = {}
        self._standing: dict[str, Standing] = {}
        self._not_before: dict[str, float] = {}
        self._sweep()

    def kind(self, backend: Backend, profile: Profile) -> Kind:
        """The first time some 40 ms, because runsc is read; then nothing."""
        found = self._kinds.get(profile)
        if found is None:
            if len(self._kinds) >= KINDS:  # a client that makes up limits shall not fill the memory with them
                oldest = self._kinds.pop(next(iter(self._kinds)))
                self._standing.pop(oldest.key, None)
                self._not_before.pop(oldest.key, None)
            try:
                parts = backend.image_parts(profile)
            except RefusedError:
                parts = ()
            described = Manifest(parts=parts or (backend.name,), profile=profile, files=(), uid=os.geteuid())
            found = self._kinds[profile] = Kind(described.key, profile, backend, parts)
        return found

    def standing(self, kind: Kind) -> Standing:
        found = self._standing.get(kind.key, Standing.UNKNOWN if kind.parts else Standing.NONE)
        if found is Standing.NONE and kind.parts and time.monotonic() >= self._not_before.get(kind.key, 0.0):
            found = self._standing[kind.key] = Standing.MISSING
        return found

    def image(self, kind: Kind) -> Path:
        return self.folder / kind.key / "image"

    def look(self, kind: Kind, done: Callable[[], None]) -> None:
        """Finds out about one that is unknown."""
        self._standing[kind.key] = Standing.BUSY
        folder = self.folder / kind.key

        def finished(future: Future[bool]) -> None:
            problem = future.exception()
            if problem is not None:
                log.warning("the image of a %s sandbox is made again: %s", kind.profile.mode, problem)
                self._discard(folder)
            self._standing[kind.key] = Standing.HERE if problem is None and future.result() else Standing.MISSING
            done()

        self._background(lambda: _is_whole(folder, kind), finished)

    def begin(self, kind: Kind) -> None:
        """The next fresh start will be frozen: nobody else begins with it meanwhile."""
        self._standing[kind.key] = Standing.BUSY

    def folder_for(self, kind: Kind) -> Path:
        """Where to freeze it. Raises OSError."""
        new = self.folder / f"new-{self._owner}-{next(self._numbers)}"
        (new / "image").mkdir(parents=True, mode=0o700)
        return new

    def keep(self, kind: Kind, new: Path, done: Callable[[], None]) -> None:
        """Gives what was frozen its name."""

        def finished(future: Future[None]) -> None:
            problem = future.exception()
            if problem is None:
                self._standing[kind.key] = Standing.HERE
                self._sweep()
            else:
                self.cannot(kind, problem)
            done()

        self._background(lambda: _put(new, self.folder / kind.key, kind), finished)

    def cannot(self, kind: Kind, problem: BaseException) -> None:
        """It could not be made now."""
        log.warning("sandboxes start fresh for a while, because no image could be made: %s", problem)
        self._standing[kind.key] = Standing.NONE
        self._not_before[kind.key] = time.monotonic() + AGAIN_SECONDS

    def abandon(self, kind: Kind, new: Path, problem: BaseException) -> None:
        """It could not be frozen into that folder."""
        self.cannot(kind, problem)
        self._background(lambda: shutil.rmtree(new), _say_if_failed)

    def drop(self, kind: Kind, problem: BaseException) -> None:
        """A sandbox could not be restored from it: the next fresh start makes another. What it depends on is looked at
        again, in case the programs were replaced under us."""
        self._kinds.pop(kind.profile, None)
        if self.standing(kind) is Standing.HERE:
            log.warning("the image of a %s sandbox is thrown away: %s", kind.profile.mode, problem)
            self._standing[kind.key] = Standing.MISSING
            self._discard(self.folder / kind.key)

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
        for place, (used, entry) in enumerate(sorted(images, reverse=True)):
            if used < oldest or place >= IMAGES:
                with contextlib.suppress(FileNotFoundError):
                    shutil.rmtree(entry)

    def _discard(self, folder: Path) -> None:
        gone = self.folder / f"new-{self._owner}-{next(self._numbers)}"
        with contextlib.suppress(FileNotFoundError):
            folder.rename(gone)
            self._background(lambda: shutil.rmtree(gone), _say_if_failed)


def _is_whole(folder: Path, kind: Kind) -> bool:
    found = manifest.load(folder) if folder.is_dir() else None
    if found is None:
        return False
    if found.parts != kind.parts or found.profile != kind.profile:
        raise RefusedError("its manifest names another kind")
    manifest.verify(folder, found)
    os.utime(folder)
    return True


def _put(new: Path, target: Path, kind: Kind) -> None:
    found = Manifest(
        parts=kind.parts, profile=kind.profile, files=content.read(new / "image"), uid=os.geteuid(), label="golden"
    )
    manifest.write(new, found)
    try:
        new.rename(target)
    except OSError:
        try:
            if _is_whole(target, kind):  # another broker was first, and its image is as good
                shutil.rmtree(new)
                return
        except RefusedError as error:
            log.warning("the image in %s is replaced: %s", target, error)
        shutil.rmtree(target)
        new.rename(target)


def _say_if_failed(future: Future[None]) -> None:
    problem = future.exception()
    if problem is not None:
        log.warning("a golden image cannot be removed: %s", problem)
