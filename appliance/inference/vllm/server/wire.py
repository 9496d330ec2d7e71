"""Sends JSON objects over a stream socket, each after its length in four bytes. Standard library only.

Invariants: nothing is unpickled, no frame exceeds `MOST_BYTES`, and anything but a JSON object is refused.
"""

from __future__ import annotations

import json
import socket
import struct
from typing import Any

MOST_BYTES = 256 << 20
_LENGTH = struct.Struct(">I")


class WireError(Exception):
    """Malformed message, or closed connection."""


def packed(message: dict[str, Any]) -> bytes:
    """Encodes a message for the socket to an engine process. Raises WireError if it is too large or has a non-finite
    number."""
    try:
        body = json.dumps(message, allow_nan=False, separators=(",", ":")).encode()
    except ValueError as error:
        raise WireError(f"the message cannot be sent: {error}") from error
    if len(body) > MOST_BYTES:
        raise WireError(f"a message of {len(body)} bytes is too large: at most {MOST_BYTES} are allowed")
    return _LENGTH.pack(len(body)) + body


class JsonFrames:
    """Assembles messages from the bytes of a socket."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def read(self, connection: socket.socket) -> None:
        """Reads bytes from the socket by one `recv`, and appends them. Raises WireError at the end of the stream."""
        try:
            part = connection.recv(1 << 20)
        except OSError as error:
            raise WireError(f"the connection broke: {error.strerror}") from error
        if not part:
            raise WireError("the other side closed the connection")
        self._buffer += part

    def next(self) -> dict[str, Any] | None:
        """Removes and returns the first completely received message, or None. Raises WireError."""
        if len(self._buffer) < _LENGTH.size:
            return None
        (length,) = _LENGTH.unpack_from(self._buffer)
        if length > MOST_BYTES:
            raise WireError(f"a message of {length} bytes was announced: at most {MOST_BYTES} are allowed")
        if len(self._buffer) < _LENGTH.size + length:
            return None
        body = bytes(self._buffer[_LENGTH.size : _LENGTH.size + length])
        del self._buffer[: _LENGTH.size + length]
        try:
            message = json.loads(body)
        except (ValueError, RecursionError) as error:
            raise WireError("the message is not JSON") from error
        if not isinstance(message, dict):
            raise WireError("the message is not a JSON object")
        return message
