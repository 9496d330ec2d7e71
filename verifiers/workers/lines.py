"""What service and zygote say to each other of the hands: a header, then so many bytes.

The bytes of ITEMS go to the hand as they are, and those of SAID come from it; the zygote reads neither.
"""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import NamedTuple

HEADER = struct.Struct(">IIB")
"""Bytes that follow, number of the hand, kind."""
MAX_LINE = 64 << 20
CLOCK = struct.Struct(">d?")
"""Before the frame of ITEMS: seconds of one item, and whether the hand gives way to others once an item takes long."""
INDEX = struct.Struct(">q")
PACKAGE = struct.Struct(">B")
"""Place in `verifiers.registry.DECIDE`."""
BUSY_SHARE = 0.05
"""A time-out is the submission's own when it computed for at least this share of its time. It gives way to others
(`worker.LOWER`), but gets more than that even while those have all processors, so its clock ends in time."""
PATIENCE = 3
"""Where others than ours crowd the machine, an item that computes, but came to less than that, has so many times its
seconds."""


class Kind(IntEnum):
    ITEMS = 1
    """To a hand, which is forked if there is none of that number."""
    HOLD = 2
    """The hand is to begin none of the items that it has not begun: others take them."""
    KILL = 3
    SAID = 4
    """Frames of a hand."""
    SLOW = 5
    """One item, INDEX, takes long."""
    ENDED = 6
    """A hand is no more, or as good as that; JSON of `Ended`."""
    LOAD = 7
    """Hands that are forked from now on need what is in this PACKAGE."""
    LOADED = 8
    """They have it."""


class Line(NamedTuple):
    hand: int
    kind: int
    body: bytes


class LineError(Exception):
    """The other side does not speak this protocol."""


def pack(hand: int, kind: Kind, body: bytes = b"") -> bytes:
    return HEADER.pack(len(body), hand, kind) + body


class Lines:
    """Bytes in, lines out. Raises LineError for a length that cannot be."""

    def __init__(self) -> None:
        self._bytes = bytearray()

    def feed(self, data: bytes) -> list[Line]:
        self._bytes += data
        found = []
        start, end = 0, len(self._bytes)
        while end - start >= HEADER.size:
            length, hand, kind = HEADER.unpack_from(self._bytes, start)
            if length > MAX_LINE:
                raise LineError(f"a line of {length} bytes")
            body = start + HEADER.size
            if end - body < length:
                break
            start = body + length
            found.append(Line(hand, kind, bytes(self._bytes[body:start])))
        del self._bytes[:start]
        return found
