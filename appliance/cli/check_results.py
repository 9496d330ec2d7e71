"""A file of results that grows line by line, in the order of the pairs, and can be gone on with.

What always holds: its lines are the results of the first pairs, one each, whatever ended the run that wrote them; a
line that was cut off is written anew; results in the middle are exchanged all at once, by one rename; one run at a time
writes to it; beside it lies NAME.run.json, which says what the run is about, and a run about anything else is refused.
The lock is the kernel's (flock), so it ends with its process.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import stat
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self

from appliance.errors import AssayError, ExitCode

SYNC_SECONDS = 2.0
BLOCK = 1 << 20
TROUBLE = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EMFILE, errno.ENFILE, errno.ENOMEM)
"""Of the machine, when a file cannot be opened; anything else is the name that was given."""


class Results:
    """An open file of results; close it. `about` is what a run has to be about to go on with this file."""

    def __init__(self, path: Path, about: dict[str, Any], pairs: Path | None = None) -> None:
        """Raises AssayError (2) for a file that is another run's, in use, or none; OSError."""
        self.path = path
        self.done = 0
        self._file = self._locked(pairs)
        self._synced = time.monotonic()
        try:
            self._begin(about)
        except BaseException:
            os.close(self._file)
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def about_path(self) -> Path:
        return about_path(self.path)

    def earlier(
        self, ids: Iterator[str | int], again: Callable[[dict[str, Any]], bool] = lambda result: False
    ) -> Iterator[dict[str, Any]]:
        """The results that are there, in order, each compared with the next of `ids`. What a run left unfinished at the
        end is cut off, and so are the last results as far as all of them are to be had `again`: `done` says how many
        are kept. Ask for all of them before the first `add`. Raises AssayError (2)."""
        end = place = 0
        held: list[dict[str, Any]] = []
        with os.fdopen(os.dup(self._file), "rb") as stream:
            stream.seek(0)
            for number, line in enumerate(iter(stream.readline, b""), 1):
                found = _result(line)
                if found is None:
                    if not _cut(line, stream):
                        raise self._foreign(f"line {number} is no result")
                    break
                if found["id"] != next(ids, None):
                    raise self._foreign(f"line {number} is not the result of pair {number}")
                held.append(found)
                place += len(line)
                if not again(found):
                    end, self.done = place, number
                    yield from held
                    held.clear()
        self._end = end
        os.ftruncate(self._file, end)

    def add(self, lines: Sequence[dict[str, Any]]) -> None:
        """Appends results. Raises OSError when the disk does not take them, and then none of them is half there."""
        data = memoryview("".join(f"{json.dumps(line)}\n" for line in lines).encode("ascii"))
        length = len(data)
        try:
            while data:
                data = data[os.pwrite(self._file, data, self._end + length - len(data)) :]
            if time.monotonic() - self._synced >= SYNC_SECONDS:
                self.sync()
        except OSError as error:
            with contextlib.suppress(OSError):
                os.ftruncate(self._file, self._end)
            raise OSError(error.errno, error.strerror, str(self.path)) from error
        self._end += length
        self.done += len(lines)

    def exchange(self, lines: Mapping[int, dict[str, Any]]) -> None:
        """Puts other results in the places of those that are there, by number from 0. Raises OSError when the disk does
        not take them, and then none is exchanged."""
        if not lines:
            return
        partial = self.path.with_name(f"{self.path.name}.partial")
        try:
            with partial.open("wb") as new, os.fdopen(os.dup(self._file), "rb") as old:
                os.fchmod(new.fileno(), stat.S_IMODE(os.fstat(self._file).st_mode))
                old.seek(0)
                for number, line in enumerate(iter(old.readline, b"")):
                    new.write(f"{json.dumps(lines[number])}\n".encode("ascii") if number in lines else line)
                new.flush()
                os.fsync(new.fileno())
                end = new.tell()
            file = os.open(partial, os.O_RDWR | os.O_CLOEXEC)
        except OSError as error:
            partial.unlink(missing_ok=True)
            raise OSError(error.errno, error.strerror, str(self.path)) from error
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # before it has the name that others open
        partial.replace(self.path)
        _sync_folder(self.path.parent)
        os.close(self._file)
        self._file, self._end = file, end

    def sync(self) -> None:
        os.fsync(self._file)
        self._synced = time.monotonic()

    def close(self) -> None:
        """Everything is on the disk afterwards, and somebody else may go on. Closing twice is fine."""
        if self._file >= 0:
            try:
                os.fsync(self._file)
            except OSError as error:
                raise OSError(error.errno, error.strerror, str(self.path)) from error
            finally:
                os.close(self._file)
                self._file = -1

    def _locked(self, pairs: Path | None) -> int:
        try:
            file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK, 0o666)
        except OSError as error:
            raise _unwritable(self.path, error) from error
        try:
            found = os.fstat(file)
            if not stat.S_ISREG(found.st_mode):
                raise AssayError(
                    f"{self.path} is no plain file",
                    "leave --out out, and results go to standard output",
                    ExitCode.USAGE,
                )
            if pairs is not None and pairs.exists() and os.path.samestat(found, pairs.stat()):
                raise AssayError("--out names the pairs themselves", "give the results another name", ExitCode.USAGE)
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise self._in_use() from error
            if not (self.path.exists() and os.path.samestat(found, self.path.stat())):
                raise self._in_use()  # its results were exchanged since it was opened
        except BaseException:
            os.close(file)
            raise
        self._end = found.st_size
        return file

    def _in_use(self) -> AssayError:
        return AssayError(
            f"another run is writing to {self.path}", "wait for it, or name another --out", ExitCode.USAGE
        )

    def _begin(self, about: dict[str, Any]) -> None:
        place = self.about_path
        if os.fstat(self._file).st_size == 0:
            try:
                _write(place, about)
            except OSError as error:
                raise _unwritable(place, error) from error
            return
        try:
            before = json.loads(place.read_bytes())
        except FileNotFoundError:
            raise self._foreign(f"there is no {place.name} beside it that says what it is about") from None
        except (ValueError, RecursionError):
            raise self._foreign(f"{place.name} beside it cannot be read") from None
        differ = sorted(name for name in before.keys() | about.keys() if before.get(name) != about.get(name))
        if differ:
            raise AssayError(
                f"{self.path} has results of another run: {', '.join(differ)} changed",
                "name another --out, or remove that file to begin anew",
                ExitCode.USAGE,
            )

    def _foreign(self, why: str) -> AssayError:
        return AssayError(
            f"{self.path} cannot be gone on with: {why}",
            "name another --out; nothing in this one was changed",
            ExitCode.USAGE,
        )


def _unwritable(path: Path, error: OSError) -> Exception:
    """The same error for trouble of the machine, another one (2) where the name cannot be written."""
    if error.errno in TROUBLE:
        return OSError(error.errno, error.strerror, str(path))
    return AssayError(f"{path}: {error.strerror}", "name another --out, which can be written", ExitCode.USAGE)


def about_path(path: Path) -> Path:
    return path.with_name(f"{path.name}.run.json")


def _result(line: bytes) -> dict[str, Any] | None:
    if not line.endswith(b"\n"):
        return None
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if isinstance(found, dict) and {"id", "outcome", "reason", "seconds"} <= found.keys():
        return found
    return None


def _cut(line: bytes, stream: BinaryIO) -> bool:
    """Whether this is what a run or a machine leaves that ended in the middle of a line: the file's last one without
    its end, or zeros that the disk had not yet replaced."""
    if not line.endswith(b"\n"):
        return True
    if line.strip(b"\0\n"):
        return False
    return all(not block.strip(b"\0") for block in iter(lambda: stream.read(BLOCK), b""))


def _write(path: Path, about: dict[str, Any]) -> None:
    """Whole or not at all."""
    partial = path.with_name(f"{path.name}.partial")
    with partial.open("w") as stream:
        stream.write(json.dumps(about, indent=2, sort_keys=True) + "\n")
        stream.flush()
        os.fsync(stream.fileno())
    partial.replace(path)
    _sync_folder(path.parent)


def _sync_folder(path: Path) -> None:
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
