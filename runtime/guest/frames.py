"""The frames between host and guest, from the guest's side; `runtime.guest.wire` is the host's.

Every request carries a nonce that the host chose for that call alone, and its reply has to repeat it, so code that runs
now cannot answer for a call that comes later. Replies are binary headers with plain text behind them: the host parses
no structure that a guest chose, apart from the small JSON report that it caps and checks.
"""

from __future__ import annotations

import struct

NONCE_BYTES = 16
NO_NONCE = bytes(NONCE_BYTES)
REQUEST = struct.Struct(">I16sBI")
"""Bytes after this header, nonce, number of `ops`, session number."""
REPLY = struct.Struct(">I16sBI")
"""Bytes after this header, nonce, number of `kinds`, how many of those bytes are output; the rest is the report."""
ENTRY = struct.Struct(">cQH")
"""One name of a listing: `f` file, `d` folder, `o` other; size in bytes; length of the path in bytes, which follows."""
LIST_BYTES = 1 << 20
"""The longest content of a LIST reply."""
FIELDS = struct.Struct(">I")
"""Bytes of fields that follow, each ended by a zero byte; behind them the content."""

Request = tuple[bytes, int, int, bytes]
"""Nonce, number of `ops`, session number, body."""


def pack_reply(nonce: bytes, kind: int, output: bytes = b"", report: bytes = b"") -> bytes:
    return REPLY.pack(len(output) + len(report), nonce, kind, len(output)) + output + report


def fields_of(body: bytes) -> tuple[list[str], memoryview]:
    """The fields of a body and the content behind them. The host is trusted to have packed it."""
    (size,) = FIELDS.unpack_from(body)
    end = FIELDS.size + size
    fields = body[FIELDS.size : end].split(b"\0")[:-1]
    return [field.decode("utf-8", "surrogateescape") for field in fields], memoryview(body)[end:]


class Requests:
    """Bytes in, requests out. The host is trusted, so lengths are not capped."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, data: bytes) -> list[Request]:
        """What is complete now. A request that came in one piece is copied once."""
        if self._rest:
            self._rest += data
            data = self._rest  # type: ignore[assignment]
        found = []
        start, end = 0, len(data)
        with memoryview(data) as view:
            while end - start >= REQUEST.size:
                length, nonce, op, session = REQUEST.unpack_from(view, start)
                body = start + REQUEST.size
                if end - body < length:
                    break
                start = body + length
                found.append((nonce, op, session, bytes(view[body:start])))
        if self._rest:
            del self._rest[:start]
        elif start < end:
            self._rest += data[start:]
        return found
