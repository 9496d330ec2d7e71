"""What can be done with the files of a sandbox, each step one question to its guest.

What always holds: only canonical names below /work and /tmp are asked for; what comes back is checked for size and
shape, and its content is only ever bytes.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from pathlib import Path

from runtime.errors import BadRequestError, InfrastructureError, LimitError
from runtime.guest import wire
from runtime.guest.wire import BrokenWireError, Kind, Op
from runtime.sandbox import Entry, Limits
from runtime.sessions import transfer
from runtime.sessions.endings import Ending
from runtime.sessions.transfer import Caps, Listed

READ_BYTES = 8 << 20
"""The most that `read` can be asked for."""
FILE_SECONDS = 20.0
PATH_CHARS = 4_096
Ask = Callable[[Op, bytes, float], Ending]


def checked_path(path: str, *, folder: bool = False) -> str:
    """A canonical name under /work or /tmp (or one of the two, for a folder); the guest checks what is there. Raises
    BadRequestError for any other."""
    parts = path.split("/")
    plain = all(part not in ("", ".", "..") and len(part.encode(errors="replace")) <= 255 for part in parts[1:])
    plain = plain and "\0" not in path and len(path) <= PATH_CHARS and sendable(path)
    deep_enough = len(parts) >= (2 if folder else 3)
    known = deep_enough and not parts[0] and parts[1] in ("work", "tmp")
    if not known or not plain:
        raise BadRequestError(f"{path[:200]!r} is no plain path under /work or /tmp")
    return path


def sendable(text: str) -> bool:
    """Whether it is text, or bytes that a file system gave for text."""
    try:
        text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return False
    return True


def reason(ending: Ending) -> str:
    return ending.report.decode(errors="replace")[:300]


class Files:
    def __init__(self, ask: Ask, limits: Limits) -> None:
        self._ask, self._limits = ask, limits

    def write(self, path: str, data: bytes) -> None:
        self._write(checked_path(path), data, parents=False)

    def read(self, path: str, max_bytes: int) -> bytes:
        if not 0 < max_bytes <= READ_BYTES:
            raise BadRequestError(f"between 1 and {READ_BYTES} bytes can be read at once, not {max_bytes}")
        data = self._read(checked_path(path), 0, max_bytes + 1)
        if len(data) > max_bytes:
            raise BadRequestError(f"{path} has more than the {max_bytes} bytes asked for")
        return data

    def list(self, path: str) -> Sequence[Entry]:
        return [transfer.entry(path, listed) for listed in self._listed(checked_path(path, folder=True))]

    def upload(self, source: Path, path: str) -> int:
        checked_path(path, folder=True)
        return transfer.upload(
            source, self._caps(), lambda inside, data: self._write(checked_path(f"{path}/{inside}"), data, parents=True)
        )

    def download(self, path: str, target: Path) -> int:
        listing = self._listed(checked_path(path, folder=True))
        return transfer.download(
            listing, target, self._caps(), lambda inside, at, most: self._read(f"{path}/{inside}", at, most)
        )

    def _caps(self) -> Caps:
        return Caps(self._limits.entries, (self._limits.work_mib + self._limits.tmp_mib) << 20)

    def _listed(self, path: str) -> builtins.list[Listed]:
        ending = self._ask(Op.LIST, wire.list_body(path, entries=self._limits.entries), FILE_SECONDS)
        if ending.kind is Kind.REFUSED and ending.report.startswith(b"more than"):
            raise LimitError(f"{path} cannot be listed: {reason(ending)}")
        _require_ok(ending, path, "listed")
        try:
            listing = transfer.records(ending.output)
        except BrokenWireError as error:
            raise InfrastructureError(f"{path} is listed in no known way: {error}") from error
        if len(listing) > self._limits.entries:
            raise LimitError(f"{path} has more than {self._limits.entries} files and folders")
        return listing

    def _read(self, path: str, offset: int, most: int) -> bytes:
        ending = self._ask(Op.READ, wire.read_body(path, offset=offset, max_bytes=most), FILE_SECONDS)
        _require_ok(ending, path, "read")
        return ending.output[:most]

    def _write(self, path: str, data: bytes, *, parents: bool) -> None:
        ending = self._ask(Op.WRITE, wire.write_body(path, data, parents=parents), FILE_SECONDS)
        _require_ok(ending, path, "written")


def _require_ok(ending: Ending, path: str, what: str) -> None:
    if ending.kind is Kind.REFUSED:
        raise BadRequestError(f"{path} cannot be {what}: {reason(ending)}")
    if ending.kind is not Kind.OK:
        raise InfrastructureError(f"the sandbox ended while {path} was {what}", hint="Take a new one.")
