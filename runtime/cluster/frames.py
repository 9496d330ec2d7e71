"""Frames between a driver and its gateway, on one socket: a kind, the host concerned, and a body.

Both ends are ours and trust each other; an unreadable frame is a defect and ends the gateway.
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
    """From the gateway, once it is in the cluster; the body is the number of hosts."""
    UP = 2
    """A host is reachable; the body is its address."""
    PACKET = 3
    """Packet in either direction."""
    DOWN = 4
    """From the gateway: the host is gone. From the driver: treat it as gone, and retry later."""
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
    """Reassembles the frames of a cluster gateway's stream from arbitrary pieces."""

    def __init__(self) -> None:
        super().__init__(HEADER, LARGEST)

    def accepts(self, header: tuple[Any, ...]) -> bool:
        """True if a frame's header is acceptable and its host name fits into the frame."""
        return bool(header[2] <= header[0] <= self.most)

    def frames(self, data: bytes) -> list[Frame]:
        """Takes bytes received from the gateway; returns the frames they complete. Raises FrameError, or ValueError."""
        return [Frame(FrameKind(kind), body[:host].decode(), body[host:]) for (_, kind, host), body in self.feed(data)]
