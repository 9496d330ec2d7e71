"""Messages between service and zygote: a header, then the bytes that it announces.

ITEMS are forwarded to the worker unchanged, and REPLIES come from it unchanged; the zygote parses neither.
"""

from __future__ import annotations

import struct
from enum import IntEnum

from runtime.framing import FrameReader

HEADER = struct.Struct(">IIB")
"""Length of the body in bytes, number of the worker, kind."""
MAX_MESSAGE = 64 << 20
CLOCK = struct.Struct(">d?")
"""Prefix of ITEMS: time limit per item in seconds, and if the worker lowers its priority on a slow item."""
INDEX = struct.Struct(">q")
PACKAGE = struct.Struct(">B")
"""Index into `verifiers.registry.packages`."""


class MessageKind(IntEnum):
    ITEMS = 1
    """Items for a worker, which is forked if it does not exist."""
    HOLD = 2
    """The worker must not start items beyond INDEX: other workers take them."""
    KILL = 3
    REPLIES = 4
    """Reply frames of a worker."""
    SLOW = 5
    """Item INDEX is slow."""
    ENDED = 6
    """A worker ended or was given up; JSON with status and reason."""
    LOAD = 7
    """The zygote must import this PACKAGE for the workers that it forks from now on."""
    LOADED = 8
    """PACKAGE is imported."""


def pack(worker: int, kind: MessageKind, body: bytes = b"") -> bytes:
    return HEADER.pack(len(body), worker, kind) + body


def message_reader() -> FrameReader:
    """Returns a reader that splits the stream between service and zygote into headers with their bodies."""
    return FrameReader(HEADER, MAX_MESSAGE)
