"""An append-only file of results, one JSON line each; the last line of an id counts.

Invariants: a partial last line is truncated before another is added. One run at a time writes to the file.
NAME.run.json beside it describes the run, and a different run is refused. The lock is the kernel's (flock), so it ends
with its process.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import stat
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from appliance.errors import AssayError, UsageError
from appliance.system.durable_file import replace_file

SYNC_SECONDS = 2.0
TROUBLE = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EMFILE, errno.ENFILE, errno.ENOMEM)
"""Machine errors when a file cannot be opened; all others are faults of the given name."""


class Results:
    """An open, locked result file, to be closed. `about` describes the run, and must match to continue the file."""

    def __init__(self, path: Path, about: dict[str, Any], pairs: Path | None = None) -> None:
        """Opens and locks a result file, truncates a partial last line and reads earlier outcomes. Raises OSError, and
        AssayError (2) for another run's file, one in use, or one that is not a plain file."""
        self.path = path
        self.outcomes: dict[str, str] = {}
        """Outcomes in the file, by id."""
        self._file = self._locked(pairs)
        self._synced = time.monotonic()
        try:
            self._begin(about)
            self._end = self._read()
            os.ftruncate(self._file, self._end)
        except BaseException:
            os.close(self._file)
            raise

    def add(self, lines: Sequence[dict[str, Any]]) -> None:
        """Appends result lines to the file. Raises OSError if the disk rejects them; then none is partly written."""
        data = memoryview("".join(f"{json.dumps(line)}\n" for line in lines).encode("ascii"))
        place = self._end
        try:
            while data:
                written = os.pwrite(self._file, data, place)
                data, place = data[written:], place + written
            if time.monotonic() - self._synced >= SYNC_SECONDS:
                os.fsync(self._file)
                self._synced = time.monotonic()
        except OSError as error:
            with contextlib.suppress(OSError):
                os.ftruncate(self._file, self._end)
            raise OSError(error.errno, error.strerror, str(self.path)) from error
        self._end = place
        self.outcomes.update((str(line["id"]), line["outcome"]) for line in lines)

    def close(self) -> None:
        """Syncs the result file and releases its lock; may be called twice."""
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
                raise UsageError(f"{self.path} is not a regular file", "omit --out to write results to standard output")
            if pairs is not None and pairs.exists() and os.path.samestat(found, pairs.stat()):
                raise UsageError("--out and --pairs name the same file", "give another --out")
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(file)
            raise UsageError(f"another run is writing to {self.path}", "wait for it, or name another --out") from error
        except BaseException:
            os.close(file)
            raise
        return file

    def _begin(self, about: dict[str, Any]) -> None:
        """Writes the run's description beside an empty result file. For any other file, raises UsageError if its
        description differs, is missing or cannot be read."""
        place = about_path(self.path)
        if os.fstat(self._file).st_size == 0:
            try:
                replace_file(place, json.dumps(about, indent=2, sort_keys=True).encode() + b"\n")
            except OSError as error:
                raise _unwritable(place, error) from error
            return
        try:
            before = json.loads(place.read_bytes())
        except FileNotFoundError:
            raise self._foreign(f"{place.name} beside it is missing") from None
        except (ValueError, RecursionError):
            raise self._foreign(f"{place.name} beside it cannot be read") from None
        differ = sorted(name for name in before.keys() | about.keys() if before.get(name) != about.get(name))
        if differ:
            raise UsageError(
                f"{self.path} belongs to a different run: {', '.join(differ)} changed",
                "name another --out, or remove that file to start again",
            )

    def _read(self) -> int:
        """Reads the outcomes in the result file; returns the end of its last complete line."""
        end = 0
        with os.fdopen(os.dup(self._file), "rb") as stream:
            stream.seek(0)
            for number, line in enumerate(stream, 1):
                found = _result(line)
                if found is None:
                    if line.endswith(b"\n") and line.strip(b"\0\n"):
                        raise self._foreign(f"line {number} is not a result")
                    if stream.read().strip(b"\0"):
                        raise self._foreign(f"line {number} is truncated, but more lines follow")
                    break
                self.outcomes[str(found["id"])] = found["outcome"]
                end += len(line)
        return end

    def _foreign(self, why: str) -> AssayError:
        return UsageError(f"{self.path} cannot be continued: {why}", "name another --out; this one was not changed")


def _unwritable(path: Path, error: OSError) -> Exception:
    """Converts an error in writing the result file to a usage error (2). Keeps faults of the machine, such as a full
    disk."""
    if error.errno in TROUBLE:
        return OSError(error.errno, error.strerror, str(path))
    return UsageError(f"{path}: {error.strerror}", "name another, writable --out")


def about_path(path: Path) -> Path:
    return path.with_name(f"{path.name}.run.json")


def _result(line: bytes) -> dict[str, Any] | None:
    """Parses a line of a result file. None for an incomplete line, or zeros that the disk has not replaced yet."""
    try:
        found = json.loads(line) if line.endswith(b"\n") else None
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) and {"id", "outcome", "reason", "seconds"} <= found.keys() else None
