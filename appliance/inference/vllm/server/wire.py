"""Sends JSON objects over a stream socket, each behind its length in four bytes. Standard library only.

What always holds: nothing is unpickled, no frame is larger than `MOST_BYTES`, and what is no JSON object is refused.
"""

from __future__ import annotations

import json
import socket
import struct
from typing import Any

MOST_BYTES = 256 << 20
_LENGTH = struct.Struct(">I")


class WireError(Exception):
    """What came is no message, or the other side is gone."""


def packed(message: dict[str, Any]) -> bytes:
    """Raises WireError for what is too large or holds a number that is not finite."""
    try:
        body = json.dumps(message, allow_nan=False, separators=(",", ":")).encode()
    except ValueError as error:
        raise WireError(f"it cannot be sent: {error}") from error
    if len(body) > MOST_BYTES:
        raise WireError(f"a message of {len(body)} bytes is too large: {MOST_BYTES} are allowed")
    return _LENGTH.pack(len(body)) + body


class JsonFrames:
    """Collects what is read from a socket into messages."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def read(self, connection: socket.socket) -> None:
        """Takes what one `recv` gives. Raises WireError at the end of the stream."""
        try:
            part = connection.recv(1 << 20)
        except OSError as error:
            raise WireError(f"the connection broke: {error.strerror}") from error
        if not part:
            raise WireError("the other side closed the connection")
        self._buffer += part

    def next(self) -> dict[str, Any] | None:
        """Takes out the first whole message; None while there is none. Raises WireError."""
        if len(self._buffer) < _LENGTH.size:
            return None
        (length,) = _LENGTH.unpack_from(self._buffer)
        if length > MOST_BYTES:
            raise WireError(f"a message of {length} bytes was announced: {MOST_BYTES} are allowed")
        if len(self._buffer) < _LENGTH.size + length:
            return None
        body = bytes(self._buffer[_LENGTH.size : _LENGTH.size + length])
        del self._buffer[: _LENGTH.size + length]
        try:
            message = json.loads(body)
        except (ValueError, RecursionError) as error:
            raise WireError("what came is no JSON") from error
        if not isinstance(message, dict):
            raise WireError("what came is no JSON object")
        return message
