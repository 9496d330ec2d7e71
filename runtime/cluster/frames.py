"""Defines the frames between a driver and its gateway, on one socket: a kind, the host that it is about, and a body.

Both ends are ours and trust each other; a frame that cannot be read is a defect and ends the gateway.
"""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import Any, NamedTuple

from runtime.guest.frames import FrameReader

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
    """From the gateway, before it ends: why it is not in the cluster, as a `WireFailure`."""


class Frame(NamedTuple):
    kind: FrameKind
    host: str = ""
    body: bytes = b""

    def encoded(self) -> bytes:
        host = self.host.encode()
        return HEADER.pack(len(host) + len(self.body), self.kind, len(host)) + host + self.body


class FrameDecoder(FrameReader):
    """Puts frames together again from whatever pieces come in."""

    def __init__(self) -> None:
        super().__init__(HEADER, LARGEST)

    def accepts(self, header: tuple[Any, ...]) -> bool:
        """Asks also that the name of its host is part of it."""
        return bool(header[2] <= header[0] <= self.most)

    def frames(self, data: bytes) -> list[Frame]:
        """Gives those that are complete now. Raises FrameError or ValueError for what is no frame of ours."""
        return [Frame(FrameKind(kind), body[:host].decode(), body[host:]) for (_, kind, host), body in self.feed(data)]
