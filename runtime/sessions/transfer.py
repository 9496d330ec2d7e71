"""Copies file trees between host and sandbox; neither names nor file kinds can harm the host.

Nothing is packed, so nothing can unpack into more. Invariants: on the host every path step is taken from an open folder
and follows no link; created entries are new, plain files or folders, with a fixed mode; a failed download leaves
nothing. Names that are not plain text, and anything but folders and files with one name, are refused and named in the
error. Not promised: a tree that changes during the copy is copied as found, or refused.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from runtime.errors import BadRequestError, LimitError
from runtime.guest import wire
from runtime.guest.frames import write_all
from runtime.guest.wire import FrameError
from runtime.sandbox import FileEntry, FileKind

NAME_BYTES = 255
DEPTH = 32
CHUNK_BYTES = 1 << 20
FILE_MODE, FOLDER_MODE = 0o644, 0o755
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
KINDS = {b"f": FileKind.FILE, b"d": FileKind.FOLDER}


class Caps(NamedTuple):
    """Limits of copying one file tree."""

    entries: int
    """Number of files and folders."""
    bytes: int
    """Total size of all files, in bytes."""


class ListedName(NamedTuple):
    """File or folder in a guest's listing, as reported by the guest; the path is relative to the listed folder."""

    path: bytes
    kind: FileKind
    size: int


def records(data: bytes) -> list[ListedName]:
    """Parses a guest's listing into its records. Raises FrameError for malformed data."""
    found, at = [], 0
    while at < len(data):
        if len(data) - at < wire.ENTRY.size:
            raise FrameError("truncated record in a listing")
        kind, size, length = wire.ENTRY.unpack_from(data, at)
        at += wire.ENTRY.size
        if len(data) - at < length:
            raise FrameError("truncated name in a listing")
        found.append(ListedName(data[at : at + length], KINDS.get(kind, FileKind.OTHER), size))
        at += length
    return found


def entry(folder: str, listed: ListedName) -> FileEntry:
    """Converts a record of a guest's listing to the entry shown to the caller; non-text bytes become escapes."""
    return FileEntry(f"{folder}/{listed.path.decode(errors='backslashreplace')}", listed.kind, listed.size)


def checked_parts(path: bytes) -> list[str]:
    """Splits a relative path into its names. Raises BadRequestError if any is unwanted on the host."""
    try:
        parts = path.decode().split("/")
    except UnicodeDecodeError:
        raise BadRequestError(f"a non-text name is not copied: {path[:80]!r}") from None
    if len(parts) > DEPTH:
        raise BadRequestError(f"folders nested more than {DEPTH} deep are not copied: {path[:80]!r}")
    for part in parts:
        plain = part not in ("", ".", "..") and part.isprintable() and len(part.encode()) <= NAME_BYTES
        if not plain:
            raise BadRequestError(f"an odd name is not copied: {path[:80]!r}")
    return parts


# out of the sandbox


def download(listing: Sequence[ListedName], target: Path, caps: Caps, read: Callable[[str, int, int], bytes]) -> int:
    """Creates `target` and copies the listed files into it; returns their number.

    `read` returns bytes of a relative path, from an offset, up to a maximum. Raises BadRequestError for entries that
    cannot be copied completely and for an existing target, LimitError for too much data.
    """
    if len(listing) > caps.entries:
        raise LimitError(f"{len(listing)} files and folders; at most {caps.entries} are copied")
    announced = sum(listed.size for listed in listing if listed.kind is FileKind.FILE)
    if announced > caps.bytes:
        raise LimitError(f"{announced} bytes; at most {caps.bytes} are copied")
    for listed in listing:
        checked_parts(listed.path)
        if listed.kind is FileKind.OTHER:
            raise BadRequestError(f"not a plain file or folder: {listed.path[:80]!r}")
    parent, name = _parent_of(target)
    try:
        with _made(parent, name, target) as top:
            return _fill(top, listing, caps, read)
    finally:
        os.close(parent)


def _parent_of(target: Path) -> tuple[int, str]:
    try:
        return os.open(target.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC), target.name
    except OSError as error:
        raise BadRequestError(f"{target.parent} is not a folder: {error.strerror}") from error


@contextlib.contextmanager
def _made(parent: int, name: str, target: Path) -> Iterator[int]:
    """Creates and opens a new host folder, which is removed if the block fails."""
    try:
        os.mkdir(name, FOLDER_MODE, dir_fd=parent)
    except FileExistsError:
        raise BadRequestError(f"{target} already exists; a download creates its own folder") from None
    except OSError as error:
        raise BadRequestError(f"{target} cannot be created: {error.strerror}") from error
    top = os.open(name, FOLDER, dir_fd=parent)
    try:
        yield top
    except BaseException:
        shutil.rmtree(name, dir_fd=parent)
        raise
    finally:
        os.close(top)


def _fill(top: int, listing: Sequence[ListedName], caps: Caps, read: Callable[[str, int, int], bytes]) -> int:
    files, left = 0, caps.bytes
    for listed in sorted(listing):  # a folder comes before what is in it
        parts = checked_parts(listed.path)
        folder = _open_inside(top, parts[:-1], f"in no listed folder: {listed.path[:80]!r}")
        try:
            if listed.kind is FileKind.FOLDER:
                os.mkdir(parts[-1], FOLDER_MODE, dir_fd=folder)
            else:
                left -= _copy_out(folder, parts, listed, left, read)
                files += 1
        except FileExistsError:
            raise BadRequestError(f"listed twice: {listed.path[:80]!r}") from None
        except OSError as error:
            raise BadRequestError(f"{listed.path[:80]!r} cannot be written here: {error.strerror}") from error
        finally:
            os.close(folder)
    return files


def _copy_out(
    folder: int, parts: list[str], listed: ListedName, left: int, read: Callable[[str, int, int], bytes]
) -> int:
    file = os.open(
        parts[-1], os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, FILE_MODE, dir_fd=folder
    )
    try:
        size = 0
        while chunk := read("/".join(parts), size, CHUNK_BYTES):
            size += len(chunk)
            if size > left:
                raise LimitError(f"{listed.path[:80]!r} has grown beyond what may be copied")
            write_all(file, chunk)
            if len(chunk) < CHUNK_BYTES:
                break
        return size
    finally:
        os.close(file)


# into the sandbox


def upload(source: Path, caps: Caps, write: Callable[[str, bytes], None]) -> int:
    """Passes every file below a folder to `write`, with its relative path; returns their number.

    Raises BadRequestError for anything but plain files and folders, LimitError for too much data. Files written before
    stay.
    """
    try:
        top = os.open(source, FOLDER)
    except OSError as error:
        raise BadRequestError(f"{source} is not a folder to upload: {error.strerror}") from error
    try:
        files = _plan(top, caps)
        left = caps.bytes
        for parts in files:
            data = _copy_in(top, parts, left)
            left -= len(data)
            write("/".join(parts), data)
        return len(files)
    finally:
        os.close(top)


def _plan(top: int, caps: Caps) -> list[list[str]]:
    """Returns the paths of all files below an open folder, inspected before anything is sent."""
    files: list[list[str]] = []
    seen = 0
    waiting: list[list[str]] = [[]]
    while waiting:
        inside = waiting.pop()
        folder = _open_inside(top, inside, f"{'/'.join(inside)!r} cannot be read")
        try:
            for name in sorted(os.listdir(folder)):  # noqa: PTH208
                seen += 1
                if seen > caps.entries:
                    raise LimitError(f"more than {caps.entries} files and folders are not copied at once")
                parts = [*inside, name]
                checked_parts(os.fsencode("/".join(parts)))
                found = os.stat(name, dir_fd=folder, follow_symlinks=False)
                if stat.S_ISDIR(found.st_mode):
                    waiting.append(parts)
                elif stat.S_ISREG(found.st_mode) and found.st_nlink == 1:
                    files.append(parts)
                else:
                    raise BadRequestError(f"not a plain file with one name, nor a folder: {'/'.join(parts)!r}")
        finally:
            os.close(folder)
    return files


def _open_inside(top: int, parts: Sequence[str], problem: str) -> int:
    """Opens a folder by its path components. Raises BadRequestError with the problem and its cause."""
    folder = os.dup(top)
    for part in parts:
        try:
            inner = os.open(part, FOLDER, dir_fd=folder)
        except OSError as error:
            raise BadRequestError(f"{problem}: {error.strerror}") from error
        finally:
            os.close(folder)
        folder = inner
    return folder


def _copy_in(top: int, parts: Sequence[str], left: int) -> bytes:
    name = "/".join(parts)
    folder = _open_inside(top, parts[:-1], f"{name!r} cannot be read")
    try:
        file = os.open(parts[-1], os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    except OSError as error:
        raise BadRequestError(f"{name!r} cannot be read: {error.strerror}") from error
    finally:
        os.close(folder)
    try:
        found = os.fstat(file)
        if not stat.S_ISREG(found.st_mode) or found.st_nlink != 1:
            raise BadRequestError(f"not a plain file with one name: {name!r}")
        data = bytearray()
        while len(data) <= left and (more := os.read(file, min(CHUNK_BYTES, left + 1 - len(data)))):
            data += more
        if found.st_size > left or len(data) > left:
            raise LimitError(f"{name!r} exceeds what may still be copied")
        return bytes(data)
    finally:
        os.close(file)
