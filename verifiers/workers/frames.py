"""Messages between the service and its worker: four bytes of length, then JSON. Nothing else crosses the pipes."""

from __future__ import annotations

import json
import struct
from typing import Any

HEADER = struct.Struct(">I")
MAX_FRAME = 64 << 20
"""Bytes; a longer frame is a broken peer."""
ENCODER = json.JSONEncoder(separators=(",", ":"))
"""Made once: `json.dumps` makes a new one for each message, which costs more than the message."""


class FrameError(Exception):
    """The other side does not speak this protocol."""


def encode(message: Any) -> bytes:
    body = ENCODER.encode(message).encode()
    if len(body) > MAX_FRAME:
        raise FrameError(f"a frame of {len(body)} bytes")
    return HEADER.pack(len(body)) + body


class Frames:
    """Bytes in, whole messages out. Raises FrameError for a length or a body that cannot be."""

    def __init__(self) -> None:
        self._bytes = bytearray()

    def feed(self, data: bytes) -> None:
        self._bytes += data

    def next(self) -> Any | None:
        if len(self._bytes) < HEADER.size:
            return None
        (length,) = HEADER.unpack_from(self._bytes)
        if length > MAX_FRAME:
            raise FrameError(f"a frame of {length} bytes")
        end = HEADER.size + length
        if len(self._bytes) < end:
            return None
        body = bytes(self._bytes[HEADER.size : end])
        del self._bytes[:end]
        try:
            return json.loads(body)
        except (ValueError, RecursionError) as error:
            raise FrameError("a frame that is not JSON") from error
