"""The messages between service and zygote about the workers: a header, then so many bytes.

The bytes of ITEMS go to the worker as they are, and those of REPLIES come from it; the zygote reads neither.
"""

from __future__ import annotations

import struct
from enum import IntEnum

from runtime.framing import FrameReader

HEADER = struct.Struct(">IIB")
"""Bytes that follow, number of the worker, kind."""
MAX_MESSAGE = 64 << 20
CLOCK = struct.Struct(">d?")
"""Before the frame of ITEMS: seconds of one item, and whether the worker gives way once an item takes long."""
INDEX = struct.Struct(">q")
PACKAGE = struct.Struct(">B")
"""Place in `verifiers.registry.DECIDE`."""


class MessageKind(IntEnum):
    ITEMS = 1
    """To a worker, which is forked if there is none of that number."""
    HOLD = 2
    """The worker is to begin none of the items that it has not begun: others take them."""
    KILL = 3
    REPLIES = 4
    """Frames of a worker."""
    SLOW = 5
    """One item, INDEX, takes long."""
    ENDED = 6
    """A worker is no more, or as good as that; JSON of how and why."""
    LOAD = 7
    """Workers that are forked from now on need what is in this PACKAGE."""
    LOADED = 8
    """They have it."""


def pack(worker: int, kind: MessageKind, body: bytes = b"") -> bytes:
    return HEADER.pack(len(body), worker, kind) + body


def message_reader() -> FrameReader:
    """Cuts the stream between service and zygote: gives headers with their bodies."""
    return FrameReader(HEADER, MAX_MESSAGE)
