"""Sends one message per packet: JSON on a connected Unix socket (SOCK_SEQPACKET), descriptors beside it.

Invariants: nothing blocks; a packet that is too long, or has too many descriptors, is a PacketError and never a partial
message; received descriptors are the receiver's to close.
"""

from __future__ import annotations

import array
import os
import socket
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from pydantic import BaseModel

from runtime.broker.messages import PACKET_BYTES

DESCRIPTORS = 2
_ANCILLARY = socket.CMSG_SPACE(DESCRIPTORS * array.array("i").itemsize)


class PacketError(Exception):
    """Raised for input that is not a packet of this protocol."""


class Packet(NamedTuple):
    data: bytes
    """Payload; empty if the other side has hung up."""
    descriptors: tuple[int, ...]


def pack(message: BaseModel) -> bytes:
    return message.model_dump_json().encode()


def send(connection: socket.socket, data: bytes, descriptors: Sequence[int] = ()) -> bool:
    """Sends a packet with descriptors; False if the kernel's buffer is full. Raises OSError if the peer has hung up."""
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))] if descriptors else []
    try:
        connection.sendmsg([data], rights, socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)
    except BlockingIOError:
        return False
    return True


def receive(connection: socket.socket) -> Packet | None:
    """Returns a socket's next packet, or None if none has arrived. Raises PacketError, or OSError if it is broken."""
    try:
        data, ancillary, flags, _ = connection.recvmsg(
            PACKET_BYTES, _ANCILLARY, socket.MSG_DONTWAIT | socket.MSG_CMSG_CLOEXEC
        )
    except BlockingIOError:
        return None
    descriptors = _descriptors(ancillary)
    if flags & (socket.MSG_TRUNC | socket.MSG_CTRUNC):
        close_all(descriptors)
        raise PacketError(f"packet exceeds {PACKET_BYTES} bytes or {DESCRIPTORS} descriptors")
    return Packet(data, descriptors)


def close_all(descriptors: Iterable[int]) -> None:
    for descriptor in descriptors:
        os.close(descriptor)


def _descriptors(ancillary: list[tuple[int, int, bytes]]) -> tuple[int, ...]:
    found = array.array("i")
    for level, kind, data in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            found.frombytes(data[: len(data) - len(data) % found.itemsize])
    return tuple(found)
