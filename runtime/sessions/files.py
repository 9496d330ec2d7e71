"""Works with the files of a sandbox, each step one question to its guest.

What always holds: only canonical names below /work and /tmp are asked for; what comes back is checked for size and
shape, and its content is only ever bytes.
"""

from __future__ import annotations

import builtins
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path

from runtime.errors import BadRequestError, InfrastructureError, LimitError
from runtime.guest import wire
from runtime.guest.wire import FrameError, Op, ReplyKind
from runtime.sandbox import FileEntry, Limits
from runtime.sessions import transfer
from runtime.sessions.outcomes import CallOutcome
from runtime.sessions.transfer import Caps, ListedName

READ_BYTES = 8 << 20
"""The most that `read` can be asked for."""
FILE_SECONDS = 20.0
PATH_CHARS = 4_096


def checked_path(path: str, *, folder: bool = False) -> str:
    """Checks that it is a canonical name under /work or /tmp (or one of the two, for a folder); the guest checks what
    is there. Raises BadRequestError for any other."""
    parts = path.split("/")
    plain = all(part not in ("", ".", "..") and len(part.encode(errors="replace")) <= 255 for part in parts[1:])
    plain = plain and "\0" not in path and len(path) <= PATH_CHARS and sendable(path)
    deep_enough = len(parts) >= (2 if folder else 3)
    known = deep_enough and not parts[0] and parts[1] in ("work", "tmp")
    if not known or not plain:
        raise BadRequestError(f"{path[:200]!r} is no plain path under /work or /tmp")
    return path


def sendable(text: str) -> bool:
    """Says whether it is text, or bytes that a file system gave for text."""
    try:
        text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return False
    return True


def reason(outcome: CallOutcome) -> str:
    return outcome.report.decode(errors="replace")[:300]


class SandboxFiles(ABC):
    """Is the part of a sandbox that is about its files."""

    limits: Limits

    @abstractmethod
    def _ask(self, op: Op, body: bytes, limit: float) -> CallOutcome:
        """Waits for the guest's answer. Raises InfrastructureError when it ended without one."""

    def write(self, path: str, data: bytes) -> None:
        """Creates or replaces a file; the folder that it is in must be there."""
        self._write(checked_path(path), data, parents=False)

    def read(self, path: str, *, max_bytes: int = 1 << 20) -> bytes:
        if not 0 < max_bytes <= READ_BYTES:
            raise BadRequestError(f"between 1 and {READ_BYTES} bytes can be read at once, not {max_bytes}")
        data = self._read(checked_path(path), 0, max_bytes + 1)
        if len(data) > max_bytes:
            raise BadRequestError(f"{path} has more than the {max_bytes} bytes asked for")
        return data

    def list(self, path: str = "/work") -> Sequence[FileEntry]:
        """Bytes of a name that are no text come out as escapes."""
        return [transfer.entry(path, listed) for listed in self._listed(checked_path(path, folder=True))]

    def upload(self, source: Path, path: str) -> int:
        """What was copied before it failed stays."""
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
        return Caps(self.limits.entries, (self.limits.work_mib + self.limits.tmp_mib) << 20)

    def _listed(self, path: str) -> builtins.list[ListedName]:
        outcome = self._ask(Op.LIST, wire.list_body(path, entries=self.limits.entries), FILE_SECONDS)
        if outcome.kind is ReplyKind.REFUSED and outcome.report.startswith(b"more than"):
            raise LimitError(f"{path} cannot be listed: {reason(outcome)}")
        _require_ok(outcome, path, "listed")
        try:
            listing = transfer.records(outcome.output)
        except FrameError as error:
            raise InfrastructureError(f"{path} is listed in no known way: {error}") from error
        if len(listing) > self.limits.entries:
            raise LimitError(f"{path} has more than {self.limits.entries} files and folders")
        return listing

    def _read(self, path: str, offset: int, most: int) -> bytes:
        outcome = self._ask(Op.READ, wire.read_body(path, offset=offset, max_bytes=most), FILE_SECONDS)
        _require_ok(outcome, path, "read")
        return outcome.output[:most]

    def _write(self, path: str, data: bytes, *, parents: bool) -> None:
        outcome = self._ask(Op.WRITE, wire.write_body(path, data, parents=parents), FILE_SECONDS)
        _require_ok(outcome, path, "written")


def _require_ok(outcome: CallOutcome, path: str, what: str) -> None:
    if outcome.kind is ReplyKind.REFUSED:
        raise BadRequestError(f"{path} cannot be {what}: {reason(outcome)}")
    if outcome.kind is not ReplyKind.OK:
        raise InfrastructureError(f"the sandbox ended while {path} was {what}", hint="Take a new one.")
