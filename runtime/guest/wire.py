"""The frames between host and guest; one definition, used on both sides.

Every request carries a nonce that the host chose for that call alone, and its reply has to repeat it, so code that runs
now cannot answer for a call that comes later. Replies are binary headers with plain text behind them: the host parses
no structure that a guest chose, apart from the small JSON report that it caps and checks.
"""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import NamedTuple

NONCE_BYTES = 16
NO_NONCE = bytes(NONCE_BYTES)
REQUEST = struct.Struct(">I16sBI")
"""Bytes after this header, nonce, `Op`, session number."""
REPLY = struct.Struct(">I16sBI")
"""Bytes after this header, nonce, `Kind`, how many of those bytes are output; the rest is the report."""


class Op(IntEnum):
    RUN = 1
    """Body: source. Reply: OK, EXCEPTION or how it failed."""
    COMPILE = 2
    """Body: source that should not compile. Reply: EXCEPTION, or IMPURE when it compiles after all."""
    OPEN = 3
    """Asks for a process for this session number; answered with READY once it waits for code."""
    DROP = 4
    """Forgets the session, and kills its process if it has one. No reply."""
    KILL = 5
    """Kills the process of the session; its call in progress is answered with KILLED."""
    EXEC = 6
    """Body: JSON {argv, seconds, output_bytes}, a newline, standard input."""
    READ = 7
    """Body: JSON {path, offset, max_bytes}. Reply: OK with at most `max_bytes` from `offset`, fewer only at the end of
    the file; or REFUSED with a reason."""
    WRITE = 8
    """Body: JSON {path, parents}, a newline, the content; with `parents`, missing folders are made."""
    PING = 9
    """Answered with READY at once. How the broker knows that a restored sandbox lives."""
    RESEED = 10
    """Body: 32 bytes. Other random numbers from here on, in the supervisor and in every process of a session, before
    its next call; answered with READY. What it cannot change is said in `runtime.guest.seeds`."""
    LIST = 11
    """Body: JSON {path, entries}. Reply: OK with `ENTRY` records, paths relative to the folder, folders before what is
    in them; or REFUSED, with a reason that begins with `more than` where it is too much."""


class Kind(IntEnum):
    """How a call ended, as the guest tells it. What the host makes of it depends on what it measured itself."""

    OK = 0
    EXCEPTION = 1
    OUTPUT = 2
    DIED = 3
    DENIED = 4
    SLICE = 5
    MEMORY = 6
    """With `FULL` as its report when what other sessions keep leaves too little room for anyone."""
    IMPURE = 7
    KILLED = 8
    READY = 9
    REFUSED = 10
    TIMEOUT = 11


FULL = b"full"
FROM_USER_PROCESS = frozenset({Kind.OK, Kind.EXCEPTION})
"""The only kinds that a process with user code in it may claim; all others are said by its supervisor or the host."""


ENTRY = struct.Struct(">cQH")
"""One name of a listing: `f` file, `d` folder, `o` other; size in bytes; length of the path in bytes, which follows."""
LIST_BYTES = 1 << 20
"""The longest content of a LIST reply."""
LIMITS_TOLD = frozenset({"memory", "disk", "files", "pids"})
"""What the report of an exception may name as `limit`, beside `error` and `traceback`."""


class Request(NamedTuple):
    nonce: bytes
    op: int
    session: int
    body: bytes


class Reply(NamedTuple):
    nonce: bytes
    kind: int
    output: bytes
    report: bytes


class BrokenWireError(Exception):
    """The bytes are not frames: too long, or lengths that contradict each other."""


def pack_request(nonce: bytes, op: Op, session: int, body: bytes = b"") -> bytes:
    return REQUEST.pack(len(body), nonce, op, session) + body


def pack_reply(nonce: bytes, kind: Kind, output: bytes = b"", report: bytes = b"") -> bytes:
    return REPLY.pack(len(output) + len(report), nonce, kind, len(output)) + output + report


class Requests:
    """Bytes in, requests out. The host is trusted, so lengths are not capped."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[Request]:
        self._buffer += data
        found = []
        while len(self._buffer) >= REQUEST.size:
            length, nonce, op, session = REQUEST.unpack_from(self._buffer)
            end = REQUEST.size + length
            if len(self._buffer) < end:
                break
            found.append(Request(nonce, op, session, bytes(self._buffer[REQUEST.size : end])))
            del self._buffer[:end]
        return found


class Replies:
    """Bytes in, replies out. Raises BrokenWireError as soon as a header announces more than `max_bytes`."""

    def __init__(self, max_bytes: int) -> None:
        self._buffer = bytearray()
        self._max_bytes = max_bytes

    def feed(self, data: bytes) -> list[Reply]:
        self._buffer += data
        found = []
        while len(self._buffer) >= REPLY.size:
            length, nonce, kind, output = REPLY.unpack_from(self._buffer)
            if length > self._max_bytes or output > length:
                raise BrokenWireError(f"a reply of {length} bytes, of which {output} output")
            end = REPLY.size + length
            if len(self._buffer) < end:
                break
            middle = REPLY.size + output
            found.append(Reply(nonce, kind, bytes(self._buffer[REPLY.size : middle]), bytes(self._buffer[middle:end])))
            del self._buffer[:end]
        return found
