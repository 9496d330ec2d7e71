"""Reads a bundle, a folder or one file, before anything in it is trusted.

Invariants: every returned file is part of a bundle, within its size limit, and matches the manifest's digest and size;
manifest and archive have one valid encoding. Files are opened below the folder without following links, must be regular
with a single name, and only a bundle's names are opened. Sizes are bounded before reading. Faults are reported, never
raised.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from appliance.jobs import layout
from appliance.jobs.layout import FIRST, LARGEST_ARCHIVE, BundleError, canonical, decode, sha256
from appliance.records.record import Record
from common import strict_json
from common.bounded_models import first_fault
from common.errors import reading

SHOWN_ADDED = 20
"""Maximum number of foreign files listed; one is enough to fail."""
HINT = "Give the folder that `assay jobs show` named, or the file that `assay bundle pack` made of it."
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class FileState(StrEnum):
    INTACT = "intact"
    CHANGED = "changed"
    MISSING = "missing"
    ADDED = "added"
    UNREADABLE = "unreadable"
    """A link, a device, a file with a second name, an oversized file, or one without read permission."""
    UNCHECKED = "unchecked"
    """The manifest needed to compare it is missing."""


class CheckedFile(Record):
    name: str
    """Name of the file; hostile if the state is `added`."""
    state: FileState
    detail: str = ""


@dataclass(frozen=True)
class BundleRead:
    form: Literal["folder", "file"]
    contents: Mapping[str, bytes]
    """Intact files, and the seal, by name."""
    files: tuple[CheckedFile, ...]
    digest: str | None
    """SHA-256 of the manifest file; None if it is unreadable."""
    faults: tuple[str, ...]
    """Faults of the archive itself."""

    @property
    def intact(self) -> bool:
        return not self.faults and all(file.state is FileState.INTACT for file in self.files)

    @property
    def wrong(self) -> tuple[str, ...]:
        """Sentences that say why the bundle is not intact; empty if it is."""
        states = (f"{file.name}: {file.detail or file.state}" for file in self.files if file.state != FileState.INTACT)
        return (*self.faults, *states)


class _Rejected(Exception):
    """A file in a bundle's folder that must not be read."""


def read_bundle(path: Path) -> BundleRead:
    """Reads a bundle's folder or archive file, and compares every file with the manifest. Raises BundleError if it
    cannot be a bundle."""
    with reading(path, BundleError, HINT), ExitStack() as closing:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        closing.callback(os.close, descriptor)
        found = os.fstat(descriptor)
        if stat.S_ISDIR(found.st_mode):
            read = _folder(descriptor)
        elif stat.S_ISREG(found.st_mode):
            read = _archive(path, descriptor)
        else:
            raise BundleError(f"{path} is neither a folder nor a file", hint=HINT)
    if all(file.state in (FileState.MISSING, FileState.ADDED) for file in read.files) and not read.faults:
        raise BundleError(f"{path} is not a bundle: it has none of a bundle's files", hint=HINT)
    return read


def _archive(path: Path, descriptor: int) -> BundleRead:
    with os.fdopen(os.dup(descriptor), "rb") as source:
        data = source.read(LARGEST_ARCHIVE + 1)
    if not data.startswith(FIRST):
        raise BundleError(f"{path} is not a bundle: wrong first bytes", hint=HINT)
    if len(data) > LARGEST_ARCHIVE:
        raise BundleError(f"{path} is not a bundle: larger than {LARGEST_ARCHIVE} bytes", hint=HINT)
    contents, fault = decode(data)
    read = _held_against_manifest("file", contents, {}, [], (f"the archive: {fault}",) if fault else ())
    if not fault:
        return read
    # Nothing after the fault was read, so those files are not missing.
    return replace(read, files=tuple(file for file in read.files if file.state is not FileState.MISSING))


def _folder(folder: int) -> BundleRead:
    contents: dict[str, bytes] = {}
    broken: dict[str, CheckedFile] = {}
    added: list[str] = []
    with ExitStack() as opened:
        places = [("", folder)]
        if layout.FILES in os.listdir(folder):  # by descriptor, so that it is the same folder below
            try:
                below = os.open(layout.FILES, _FLAGS | os.O_DIRECTORY, dir_fd=folder)
                opened.callback(os.close, below)
                places.insert(0, (f"{layout.FILES}/", below))
            except OSError as error:
                broken[layout.FILES] = _unreadable(layout.FILES, error)
        for before, place in places:
            names = sorted(os.listdir(place))  # noqa: PTH208 - by descriptor, as above
            sizes = {name: most for name in names if (most := layout.largest(before + name)) is not None}
            fit = dict(list(sizes.items())[: layout.MOST_FILES if before else None])
            added += [before + name for name in names if name not in fit and before + name != layout.FILES]
            added += [layout.FILES] if before and not names else []
            for name, most in fit.items():
                try:
                    contents[before + name] = _read(place, name, most)
                except (_Rejected, OSError) as error:
                    broken[before + name] = _unreadable(before + name, error)
    return _held_against_manifest("folder", contents, broken, added, ())


def _held_against_manifest(
    form: Literal["folder", "file"],
    contents: Mapping[str, bytes],
    broken: Mapping[str, CheckedFile],
    added: list[str],
    faults: tuple[str, ...],
) -> BundleRead:
    """Compares a bundle's files with its manifest and returns every file's state. Keeps the intact files, and the seal,
    which the manifest does not list."""
    states: list[CheckedFile] = []
    listed: dict[str, tuple[str, int]] = {}
    manifest = contents.get(layout.MANIFEST)
    if manifest is None:
        states.append(broken.get(layout.MANIFEST) or CheckedFile(name=layout.MANIFEST, state=FileState.MISSING))
    else:
        try:
            listed = _manifest(manifest)
            states.append(CheckedFile(name=layout.MANIFEST, state=FileState.INTACT))
        except ValueError as error:
            states.append(CheckedFile(name=layout.MANIFEST, state=FileState.CHANGED, detail=first_line(error)))
    intact = {name: data for name, data in contents.items() if name == layout.SEAL}
    for name in sorted({*layout.LARGEST, *listed, *contents, *broken} - {layout.MANIFEST, layout.SEAL}):
        if name in broken:
            states.append(broken[name])
        elif name not in contents:
            states.append(CheckedFile(name=name, state=FileState.MISSING))
        elif listed.get(name) == (sha256(contents[name]), len(contents[name])):
            intact[name] = contents[name]
            states.append(CheckedFile(name=name, state=FileState.INTACT))
        elif not listed:
            states.append(CheckedFile(name=name, state=FileState.UNCHECKED, detail="no manifest to compare with"))
        elif name in listed or name in layout.LARGEST:
            states.append(CheckedFile(name=name, state=FileState.CHANGED))
        else:
            states.append(CheckedFile(name=name, state=FileState.ADDED))
    if layout.SEAL in broken:
        states.append(broken[layout.SEAL])
    states += [CheckedFile(name=ascii(name)[1:-1], state=FileState.ADDED) for name in added[:SHOWN_ADDED]]
    if manifest is not None:
        intact[layout.MANIFEST] = manifest
    return BundleRead(form, intact, tuple(states), sha256(manifest) if manifest is not None else None, faults)


def _manifest(data: bytes) -> dict[str, tuple[str, int]]:
    """Returns (digest, bytes) of each file in a bundle's manifest, by name. Raises ValueError unless the manifest is
    written exactly as this program writes it."""
    if len(data) > layout.LARGEST_MANIFEST:
        raise ValueError(f"larger than {layout.LARGEST_MANIFEST} bytes")
    value = strict_json.read(data, layout.BOUNDS)
    if isinstance(value, dict) and value.get("schema_version") == 1:
        raise ValueError(f"bundle format 1 predates any release; only {layout.SCHEMA} is supported: run the job again")
    manifest = layout.BundleManifest.model_validate(value)
    names = [file.name for file in manifest.files]
    came = [one for one in manifest.files if one.name.startswith(f"{layout.FILES}/") and layout.largest(one.name)]
    if {*names} - {file.name for file in came} - {layout.MEANING} != {*layout.LARGEST} or names != sorted(set(names)):
        raise ValueError("does not list exactly the files of a bundle")
    if len(came) > layout.MOST_FILES or sum(file.bytes for file in came) > layout.LARGEST_FILES:
        raise ValueError("lists more files than a bundle may have")
    if canonical(manifest.model_dump(mode="json")) != data:
        raise ValueError("is not in canonical form")
    return {file.name: (file.sha256, file.bytes) for file in manifest.files}


def _read(folder: int, name: str, most: int) -> bytes:
    """Reads a regular file with one name and at most `most` bytes, without following links or waiting for a pipe.
    Raises _Rejected or OSError."""
    descriptor = os.open(name, _FLAGS, dir_fd=folder)
    with os.fdopen(descriptor, "rb") as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise _Rejected("not a regular file")
        if found.st_nlink != 1:
            raise _Rejected("has a second name")
        if found.st_size > most:
            raise _Rejected(f"larger than {most} bytes")
        data = file.read(most + 1)
    if len(data) > most:
        raise _Rejected(f"larger than {most} bytes")
    return data


def _unreadable(name: str, error: Exception) -> CheckedFile:
    if isinstance(error, OSError):
        detail = "a link" if error.errno == errno.ELOOP else error.strerror or str(error)
    else:
        detail = str(error)
    return CheckedFile(name=name, state=FileState.UNREADABLE, detail=detail)


def first_line(error: Exception) -> str:
    """Returns an error's text as one short ASCII line; pydantic's own spans several lines and quotes the input."""
    if isinstance(error, ValidationError):
        return ascii(str(first_fault(error)))[1:-1]
    return ascii(str(error).splitlines()[0][:200])[1:-1] if str(error) else type(error).__name__
