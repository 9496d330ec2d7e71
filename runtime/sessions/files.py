"""File operations of a sandbox, each step one request to its guest.

Invariants: only canonical full paths are requested; data is sent in pieces that the guest stores once; answers are
checked for size and shape, and their content is only ever bytes.
"""

from __future__ import annotations

import builtins
import errno
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path

from runtime.errors import (
    BadRequestError,
    FileDeniedError,
    FileIsFolderError,
    FileMissingError,
    FileTooLargeError,
    InfrastructureError,
    LimitError,
    UnknownUserError,
)
from runtime.guest import ops, wire
from runtime.guest.wire import FrameError, Op, ReplyKind
from runtime.sandbox import HOME, FileEntry, Limits
from runtime.sessions import transfer
from runtime.sessions.outcomes import CallOutcome
from runtime.sessions.transfer import Caps, ListedName

PIECE_BYTES = 1 << 20
"""Bytes read or sent per request."""
FILE_SECONDS = 20.0
PATH_CHARS, DEPTH = 4_096, 64
KINDS = {
    errno.ENOENT: FileMissingError,
    errno.ENOTDIR: FileMissingError,
    errno.EACCES: FileDeniedError,
    errno.EPERM: FileDeniedError,
    errno.EROFS: FileDeniedError,
    errno.EISDIR: FileIsFolderError,
}


def checked_path(path: str) -> str:
    """Returns a path of a sandbox in absolute form; the guest decides what is there and reachable. Raises
    BadRequestError unless it is plain."""
    full = path if path.startswith("/") else f"{HOME}/{path}"
    parts = full.split("/")[1:]
    plain = all(part not in ("", ".", "..") and len(part.encode(errors="replace")) <= 255 for part in parts)
    if not plain or "\0" in full or len(full) > PATH_CHARS or len(parts) > DEPTH or not sendable(full):
        raise BadRequestError(f"{path[:200]!r} is not a plain path: use no empty parts, dots or links")
    return full


def sendable(text: str) -> bool:
    """True if the text can be sent to a guest: valid text, including file system bytes as surrogates."""
    try:
        text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return False
    return True


def reason(outcome: CallOutcome) -> str:
    return outcome.report.decode(errors="replace")[:300]


def refusal(outcome: CallOutcome, what: str) -> BadRequestError:
    """Returns the exception for a file or program request that the guest refused, by its errno."""
    number = outcome.output.decode(errors="replace")
    known = KINDS.get(int(number), BadRequestError) if number.isdecimal() and len(number) < 8 else BadRequestError
    if outcome.output == ops.NO_USER:
        known = UnknownUserError
    return known(f"{what}: {reason(outcome)}")


class SandboxFiles(ABC):
    """Methods of a sandbox that read, write, list and copy its files."""

    limits: Limits

    @abstractmethod
    def _ask(self, op: Op, body: bytes, limit: float) -> CallOutcome:
        """Sends the guest a request and waits for the answer. Raises InfrastructureError if it ended without one."""

    def write(self, path: str, data: bytes) -> None:
        self._write(checked_path(path), data)

    def read(self, path: str, *, max_bytes: int = 1 << 20) -> bytes:
        full = checked_path(path)
        if max_bytes < 1:
            raise BadRequestError(f"max_bytes must be at least 1 ({max_bytes})")
        data = bytearray()
        while True:
            outcome = self._piece(full, len(data), min(PIECE_BYTES, max_bytes + 1 - len(data)))
            data += outcome.output
            if len(data) > max_bytes or (outcome.report.isdigit() and int(outcome.report[:20]) > max_bytes):
                raise FileTooLargeError(f"{path} has more than {max_bytes} bytes")
            if len(outcome.output) < PIECE_BYTES:
                return bytes(data)

    def list(self, path: str = "/work") -> Sequence[FileEntry]:
        """Lists everything below a sandbox's folder; non-text bytes of names appear as escapes."""
        full = checked_path(path)
        return [transfer.entry(full, listed) for listed in self._listed(full)]

    def upload(self, source: Path, path: str) -> int:
        """Copies a host folder into the sandbox; files copied before a failure stay."""
        full = checked_path(path)
        return transfer.upload(
            source, self._caps(), lambda inside, data: self._write(checked_path(f"{full}/{inside}"), data)
        )

    def download(self, path: str, target: Path) -> int:
        full = checked_path(path)
        return transfer.download(
            self._listed(full), target, self._caps(), lambda inside, at, most: self._read(f"{full}/{inside}", at, most)
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
            raise InfrastructureError(f"invalid listing of {path}: {error}") from error
        if len(listing) > self.limits.entries:
            raise LimitError(f"{path} has more than {self.limits.entries} files and folders")
        return listing

    def _read(self, path: str, offset: int, most: int) -> bytes:
        return self._piece(path, offset, most).output

    def _piece(self, path: str, offset: int, most: int) -> CallOutcome:
        outcome = self._ask(Op.READ, wire.read_body(path, offset=offset, max_bytes=most), FILE_SECONDS)
        _require_ok(outcome, path, "read")
        return outcome._replace(output=outcome.output[:most])

    def _write(self, path: str, data: bytes) -> None:
        if len(data) > (room := self._caps().bytes):
            raise LimitError(f"{path} cannot be written: {len(data)} bytes exceed the limit of {room}")
        staged, last = self._stage(data, path)
        outcome = self._ask(Op.WRITE, wire.write_body(path, last, parents=True, staged=staged), FILE_SECONDS)
        _require_ok(outcome, path, "written")

    def _stage(self, data: bytes, what: str) -> tuple[int, bytes]:
        """Sends the guest all but the last piece of the data ahead; returns the bytes sent, and the last piece."""
        at = 0
        while len(data) - at > PIECE_BYTES:
            piece = wire.stage_body(at, data[at : at + PIECE_BYTES])
            _require_ok(self._ask(Op.STAGE, piece, FILE_SECONDS), what, "sent")
            at += PIECE_BYTES
        return at, data[at:]


def _require_ok(outcome: CallOutcome, path: str, what: str) -> None:
    if outcome.kind is ReplyKind.REFUSED:
        raise refusal(outcome, f"{path} cannot be {what}")
    if outcome.kind is not ReplyKind.OK:
        raise InfrastructureError(f"the sandbox ended while {path} was {what}", hint="Open a new sandbox.")
