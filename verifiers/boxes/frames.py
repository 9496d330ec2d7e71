"""Messages between the service and its worker: four bytes of length, then JSON. Nothing else crosses the pipes."""

from __future__ import annotations

import json
import struct
from collections import deque
from typing import Any

from runtime.framing import FrameError, FrameReader

HEADER = struct.Struct(">I")
MAX_FRAME = 64 << 20
"""Maximum frame size in bytes; a peer that sends more is broken."""
ENCODER = json.JSONEncoder(separators=(",", ":"))
"""Shared encoder: `json.dumps` would create one per message, which costs more than the message."""


def encode(message: Any) -> bytes:
    body = ENCODER.encode(message).encode()
    if len(body) > MAX_FRAME:
        raise FrameError(f"a frame of {len(body)} bytes")
    return HEADER.pack(len(body)) + body


class Frames:
    """Splits a stream of bytes into whole messages. `next` raises FrameError for an invalid length or body."""

    def __init__(self) -> None:
        self._reader = FrameReader(HEADER, MAX_FRAME)
        self._bodies: deque[bytes] = deque()
        self._broken: FrameError | None = None

    def feed(self, data: bytes) -> None:
        try:
            self._bodies.extend(body for _, body in self._reader.feed(data))
        except FrameError as error:
            self._broken = error

    def next(self) -> Any | None:
        if not self._bodies:
            if self._broken is not None:
                raise self._broken
            return None
        try:
            return json.loads(self._bodies.popleft())
        except (ValueError, RecursionError) as error:
            raise FrameError("a frame that is not JSON") from error
