"""Frames between a driver and its gateway, on one socket: a kind, the host that it is about, and what is said.

Both ends are ours and trust each other; a frame that cannot be read is a defect and raises ValueError.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from enum import IntEnum
from typing import NamedTuple

HEADER = struct.Struct(">IBH")
LARGEST = 1 << 30


class FrameKind(IntEnum):
    NODES = 1
    """From the gateway, once: it is in the cluster; the body is how many hosts are there."""
    UP = 2
    """A host can be spoken to; the body is its address."""
    PACKET = 3
    """Either way."""
    DOWN = 4
    """From the gateway: the host is gone; from the driver: it is taken for gone, and may be tried again later."""
    REFUSED = 5
    """From the gateway, before it ends: why it is not in the cluster, as a `Trouble`."""


class Frame(NamedTuple):
    kind: FrameKind
    host: str = ""
    body: bytes = b""

    def encoded(self) -> bytes:
        host = self.host.encode()
        return HEADER.pack(len(host) + len(self.body), self.kind, len(host)) + host + self.body


class Decoder:
    """Puts frames together again from whatever pieces come in."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[Frame]:
        self._buffer += data
        position = 0
        while len(self._buffer) - position >= HEADER.size:
            size, kind, host = HEADER.unpack_from(self._buffer, position)
            if size > LARGEST or host > size:
                raise ValueError("no frame of this protocol")
            start = position + HEADER.size
            if len(self._buffer) - start < size:
                break
            name = bytes(self._buffer[start : start + host]).decode()
            yield Frame(FrameKind(kind), name, bytes(self._buffer[start + host : start + size]))
            position = start + size
        del self._buffer[:position]
