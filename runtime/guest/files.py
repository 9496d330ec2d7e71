"""Reads, writes and lists files for the host, in the supervisor, which user code cannot have poisoned.

The tree below /work and /tmp belongs to hostile code: every path step is opened without following links, and only a
regular file with one name is ever read or replaced. Everything runs with the rights of the guest's ordinary user. Only
the kernel is waited for, and everything read, listed or kept open is bounded by the request and the constants below.
"""

from __future__ import annotations

import errno
import os
import stat
import time

from runtime.guest import frames

ROOTS = ("work", "tmp")
NO_FILES_IN = ("proc", "sys", "dev")
"""Folders without files on disk, where opening an entry can have effects."""
DEPTH = 64
"""Deepest nesting of a listing; each level uses a descriptor."""


class FileAccessError(Exception):
    """Raised for a missing or special file, or a request beyond the limits."""


class Reach:
    """Paths that file requests can reach: below /work and /tmp, or anywhere in a root with programs and users."""

    anywhere = False


def _parts(path: str, least: int) -> list[str]:
    parts = path.split("/")
    if len(parts) <= least or parts[0] or any(part in ("", ".", "..") for part in parts[1:]):
        raise FileAccessError("only plain names can be used")
    if parts[1] in NO_FILES_IN or not (Reach.anywhere or parts[1] in ROOTS):
        where = "outside /proc, /sys and /dev" if Reach.anywhere else "under /work and /tmp"
        raise PermissionError(errno.EACCES, f"only plain names {where} can be used")
    return parts[1:]


def _open_folders(parts: list[str], *, make: bool = False) -> int:
    """Opens the last of nested folders and returns its descriptor; with `make`, creates missing ones."""
    folder = os.open("/", os.O_RDONLY | os.O_DIRECTORY)
    for part in parts:
        try:
            if make:
                _make_folder(part, folder)
            inner = _open_folder(part, folder)
        finally:
            os.close(folder)
        folder = inner
    return folder


def _make_folder(name: str, folder: int) -> None:
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        os.mkdir(name, 0o755, dir_fd=folder)


def _open_folder(name: str, folder: int) -> int:
    """Opens a folder that is not a link; returns its descriptor. Compares it with the entry before, because gVisor
    follows links despite O_NOFOLLOW with O_DIRECTORY."""
    stood = os.stat(name, dir_fd=folder, follow_symlinks=False)
    if stat.S_ISLNK(stood.st_mode):
        raise FileAccessError("a folder of the path is a link")
    inner = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=folder)
    opened = os.fstat(inner)
    if not stat.S_ISDIR(stood.st_mode) or (stood.st_dev, stood.st_ino) != (opened.st_dev, opened.st_ino):
        os.close(inner)
        raise FileAccessError("a folder of the path is a link")
    return inner


def _plain(found: os.stat_result) -> bool:
    return stat.S_ISREG(found.st_mode) and found.st_nlink == 1


def _require_plain(found: os.stat_result) -> None:
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not _plain(found):
        raise FileAccessError("not a regular file with one name")


def _open_plain(name: str, flags: int, folder: int) -> int:
    """Opens a plain file and returns its descriptor. Checked before and after: opening a device can have effects, and
    the entry may be exchanged."""
    _require_plain(os.stat(name, dir_fd=folder, follow_symlinks=False))
    file = os.open(name, flags | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
    try:
        _require_plain(os.fstat(file))
    except BaseException:
        os.close(file)
        raise
    return file


def read(path: str, offset: int, max_bytes: int) -> tuple[bytes, int]:
    """Returns up to `max_bytes` of a file from the offset, and the file's size; fewer bytes only at its end."""
    *above, name = _parts(path, 1)
    folder = _open_folders(above)
    try:
        file = _open_plain(name, os.O_RDONLY, folder)
    finally:
        os.close(folder)
    try:
        pieces, size = [], 0
        while size < max_bytes and (piece := os.pread(file, min(max_bytes - size, 1 << 20), offset + size)):
            pieces.append(piece)
            size += len(piece)
        return b"".join(pieces), os.fstat(file).st_size
    finally:
        os.close(file)


def write(path: str, pieces: list[bytes], *, parents: bool = False) -> None:
    """Replaces a file atomically by a rename, without opening the old one for content; its mode stays.

    A file that may not be written is not replaced either. `pieces` is emptied.
    """
    *above, name = _parts(path, 1)
    folder = _open_folders(above, make=parents)
    temporary = f".{os.getpid()}.{time.monotonic_ns()}"
    mode = 0o644
    try:
        try:
            standing = _open_plain(name, os.O_WRONLY, folder)
        except FileNotFoundError:
            pass
        else:
            mode = os.fstat(standing).st_mode & 0o777
            os.close(standing)
        file = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644, dir_fd=folder)
        try:
            pieces.reverse()
            while pieces:
                frames.write_all(file, pieces.pop())
            os.fchmod(file, mode)
            os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
        except OSError:
            os.unlink(temporary, dir_fd=folder)
            raise
        finally:
            os.close(file)
    finally:
        os.close(folder)


def listing(path: str, entries: int) -> bytes:
    """Returns `ENTRY` records of everything below a folder, folders before their content; links are named, never
    followed.

    Raises FileAccessError beyond `entries`, LIST_BYTES or DEPTH. In a changing tree each folder appears as it was at
    some moment.
    """
    found = _Listing(entries)
    try:
        found.take(_open_folders(_parts(path, 1)), b"", 0)
    except OSError as error:
        if error.errno == errno.EMFILE:
            raise FileAccessError("more than can be open at once: folders within one another") from error
        raise
    return b"".join(found.records)


class _Listing:
    def __init__(self, entries: int) -> None:
        self.records: list[bytes] = []
        self._entries, self._size, self._pending = entries, 0, 0

    def take(self, folder: int, above: bytes, depth: int) -> None:
        """Adds everything below an open folder to the listing, recursively, and closes the folder."""
        try:
            names = self._names(folder)
            for name in names:
                self._pending -= 1
                path = above + os.fsencode(name)
                try:
                    found = os.stat(name, dir_fd=folder, follow_symlinks=False)
                    inner = _open_folder(name, folder) if stat.S_ISDIR(found.st_mode) else -1
                except FileNotFoundError:
                    continue
                except (PermissionError, FileAccessError):  # shut by its owner, or exchanged for a link since
                    self._add(b"o", 0, path)
                    continue
                if inner >= 0:
                    self._add_folder(inner, path, depth)
                else:
                    plain = _plain(found)
                    self._add(b"f" if plain else b"o", found.st_size if plain else 0, path)
        finally:
            os.close(folder)

    def _names(self, folder: int) -> list[str]:
        """Returns the names in an open folder. Raises FileAccessError at the first name beyond the limit."""
        names = []
        with os.scandir(folder) as each:
            for entry in each:
                names.append(entry.name)
                self._pending += 1
                if len(self.records) + self._pending > self._entries:
                    raise FileAccessError(f"more than {self._entries} names")
        return names

    def _add_folder(self, inner: int, path: bytes, depth: int) -> None:
        try:
            self._add(b"d", 0, path)
            if depth + 1 == DEPTH:
                raise FileAccessError(f"more than {DEPTH - 1} folders within one another")
        except FileAccessError:
            os.close(inner)
            raise
        self.take(inner, path + b"/", depth + 1)

    def _add(self, kind: bytes, size: int, path: bytes) -> None:
        record = frames.ENTRY.pack(kind, size, len(path)) + path
        self._size += len(record)
        if self._size > frames.LIST_BYTES:
            raise FileAccessError(f"more than {frames.LIST_BYTES} bytes of names")
        self.records.append(record)
