"""Frames between host and guest, from the host's side; `runtime.guest.frames` is the guest's, and states the
invariants.

Numbers and layouts are defined once, there and in `ops` and `kinds`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum
from types import MappingProxyType
from typing import Any, NamedTuple

from runtime.guest import kinds, ops
from runtime.guest.frames import (
    ENTRY,
    FIELDS,
    LIST_BYTES,
    NO_NONCE,
    NONCE_BYTES,
    REPLY,
    REQUEST,
    FrameError,
    FrameReader,
    pack_reply,
)
from runtime.guest.kinds import EXITED, FULL

__all__ = [
    "ENTRY",
    "EXITED",
    "FULL",
    "LIST_BYTES",
    "NONCE_BYTES",
    "NO_NONCE",
    "REPLY",
    "REQUEST",
    "FrameError",
    "pack_reply",
]
NOTHING: Mapping[str, str] = MappingProxyType({})
REPORTED_LIMITS = frozenset({"memory", "disk", "files", "pids"})
"""Values of `limit` in an exception's report, beside `error` and `traceback`."""


class Op(IntEnum):
    """Kinds of host requests to a guest; `runtime.guest.ops` documents each."""

    RUN = ops.RUN
    COMPILE = ops.COMPILE
    OPEN = ops.OPEN
    DROP = ops.DROP
    KILL = ops.KILL
    EXEC = ops.EXEC
    READ = ops.READ
    WRITE = ops.WRITE
    PING = ops.PING
    RESEED = ops.RESEED
    LIST = ops.LIST
    SEED = ops.SEED
    STAGE = ops.STAGE
    WARN = ops.WARN


class ReplyKind(IntEnum):
    """Kinds of guest replies to the host; `runtime.guest.kinds` documents each."""

    OK = kinds.OK
    EXCEPTION = kinds.EXCEPTION
    OUTPUT = kinds.OUTPUT
    DIED = kinds.DIED
    DENIED = kinds.DENIED
    SLICE = kinds.SLICE
    MEMORY = kinds.MEMORY
    IMPURE = kinds.IMPURE
    KILLED = kinds.KILLED
    READY = kinds.READY
    REFUSED = kinds.REFUSED
    TIMEOUT = kinds.TIMEOUT


class Reply(NamedTuple):
    nonce: bytes
    kind: int
    output: bytes
    report: bytes


def pack_request(nonce: bytes, op: Op, session: int, body: bytes = b"") -> bytes:
    return REQUEST.pack(len(body), nonce, op, session) + body


def exec_body(
    argv: Sequence[str],
    stdin: bytes,
    *,
    seconds: float,
    output_bytes: int,
    env: Mapping[str, str] = NOTHING,
    cwd: str = "",
    user: str = "",
    staged: int = 0,
) -> bytes:
    """Packs the body of an EXEC request: a program with its arguments, and the cap of either output; `staged` input
    bytes were sent before. Without `cwd` it starts in its supervisor's folder."""
    variables = [f"{name}={value}" for name, value in env.items()]
    fields = [str(seconds), str(output_bytes), str(staged), user, cwd, str(len(variables)), *variables, *argv]
    return _body(fields, stdin)


def read_body(path: str, *, offset: int, max_bytes: int) -> bytes:
    return _body([path, str(offset), str(max_bytes)])


def write_body(path: str, content: bytes, *, parents: bool = False, staged: int = 0) -> bytes:
    """Packs a WRITE request for `staged` earlier bytes and this content; `parents` creates missing folders."""
    return _body([path, "1" if parents else "0", str(staged)], content)


def stage_body(offset: int, piece: bytes) -> bytes:
    return _body([str(offset)], piece)


def list_body(path: str, *, entries: int) -> bytes:
    return _body([path, str(entries)])


def _body(fields: Sequence[str], content: bytes = b"") -> bytes:
    """Packs a request's fields and content. Raises ValueError for a zero byte, which no path or argument can have."""
    if any("\0" in field for field in fields):
        raise ValueError("a path or argument has a zero byte")
    packed = b"".join(field.encode("utf-8", "surrogateescape") + b"\0" for field in fields)
    return FIELDS.pack(len(packed)) + packed + content


class Replies(FrameReader):
    """Reader that splits a guest's stream into replies."""

    def __init__(self, max_bytes: int) -> None:
        super().__init__(REPLY, max_bytes)

    def accepts(self, header: tuple[Any, ...]) -> bool:
        """True if a reply's output fits into its body and the body into the cap."""
        return bool(header[3] <= header[0] <= self.most)

    def replies(self, data: bytes) -> list[Reply]:
        """Takes bytes received from a guest and returns the replies that they complete. Raises FrameError as soon as a
        header announces too much."""
        return [Reply(nonce, kind, body[:output], body[output:]) for (_, nonce, kind, output), body in self.feed(data)]
