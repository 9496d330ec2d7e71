"""Frames between host and guest, from the guest's side; `runtime.guest.wire` is the host's.

Every request has a nonce that the host chose for that call alone, and its reply must repeat it, so running code cannot
answer for a later call. Replies are binary headers followed by plain text: the host parses no guest-chosen structure
but a small JSON report, which it caps and checks.
"""

from __future__ import annotations

import os
import struct

TYPE_CHECKING = False  # guards imports for type checkers: a guest does not load `typing`
if TYPE_CHECKING:
    from typing import Any

NONCE_BYTES = 16
NO_NONCE = bytes(NONCE_BYTES)
REQUEST = struct.Struct(">I16sBI")
"""Bytes after this header, nonce, `ops` number, session number."""
REPLY = struct.Struct(">I16sBI")
"""Bytes after this header, nonce, `kinds` number, number of output bytes among them; the rest is the report."""
ENTRY = struct.Struct(">cQH")
"""Listing entry: `f` file, `d` folder, `o` other; size in bytes; length of the path in bytes, which follows."""
LIST_BYTES = 1 << 20
"""Longest content of a LIST reply, in bytes."""
FIELDS = struct.Struct(">I")
"""Size in bytes of the zero-terminated fields that follow; the content comes after them."""


def pack_reply(nonce: bytes, kind: int, output: bytes = b"", report: bytes = b"") -> bytes:
    return REPLY.pack(len(output) + len(report), nonce, kind, len(output)) + output + report


def fields_of(body: bytes) -> tuple[list[str], memoryview]:
    """Splits a request's body into fields and content. The host is trusted to have packed it."""
    (size,) = FIELDS.unpack_from(body)
    end = FIELDS.size + size
    fields = body[FIELDS.size : end].split(b"\0")[:-1]
    return [field.decode("utf-8", "surrogateescape") for field in fields], memoryview(body)[end:]


def write_all(descriptor: int, data: bytes | memoryview) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


class FrameError(Exception):
    """Raised when the peer does not speak this protocol."""


class FrameReader:
    """Splits a stream into frames: a header whose first field is the number of bytes that follow, and those bytes.

    Used for all streams: guests, clusters, and the verifiers' workers.
    """

    def __init__(self, header: struct.Struct, most: int = 0xFFFFFFFF) -> None:
        """Creates a reader that has received nothing. `most`: largest number of bytes after a header."""
        self._header, self.most = header, most
        self._rest = bytearray()

    def accepts(self, header: tuple[Any, ...]) -> bool:
        """True if a frame may have this header; subclasses restrict it."""
        return bool(header[0] <= self.most)

    def feed(self, data: bytes) -> list[tuple[tuple[Any, ...], bytes]]:
        """Takes received bytes and returns the headers and bodies of frames that they complete; a body received in one
        piece is copied once. Raises FrameError as soon as a header is rejected; the stream is unusable then."""
        if self._rest:
            self._rest += data
            data = self._rest  # type: ignore[assignment]
        found = []
        start, end, size = 0, len(data), self._header.size
        with memoryview(data) as view:
            while end - start >= size:
                header = self._header.unpack_from(view, start)
                if not self.accepts(header):
                    raise FrameError(f"invalid header: {header[0]} bytes follow")
                body = start + size
                if end - body < header[0]:
                    break
                start = body + header[0]
                found.append((header, bytes(view[body:start])))
        if self._rest:
            del self._rest[:start]
        elif start < end:
            self._rest += data[start:]
        return found
