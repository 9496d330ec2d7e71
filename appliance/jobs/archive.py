"""A bundle in one file: a zip archive with exactly one valid encoding. Pure.

Invariants: equal contents give equal bytes. Nothing is compressed, no time, owner or comment is stored, and members are
contiguous in the order of their names. An archive is read in one pass within fixed bounds, then encoded again and
compared to the last byte; so no byte is free, whatever other unpackers make of it. Any zip program opens it. Names are
never used to open anything.

Format: PKWARE's APPNOTE.TXT 6.3.3, sections 4.3.7 (local header), 4.3.12 (directory), 4.3.16 (end).
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Mapping

from appliance.jobs.layout import (
    LARGEST,
    LARGEST_FILES,
    LARGEST_MANIFEST,
    LARGEST_MEANING,
    LARGEST_SEAL,
    MOST_FILES,
    largest,
)

HEADER = struct.Struct("<4s5H3I2H")
ENTRY = struct.Struct("<4s6H3I5H2I")
END = struct.Struct("<4s4H2IH")
FIRST = b"PK\x03\x04"
DAY = 0x0021
"""Earliest date in the format, 1980-01-01: the field is mandatory."""
MADE_BY = 0x0314
"""Unix, version 2.0, so that unpackers apply the mode below."""
MODE = 0o100644 << 16
AROUND = 1 << 14
"""Upper bound for headers and directory, in bytes."""
MOST_MEMBERS = len(LARGEST) + 3 + MOST_FILES
"""Maximum number of members; the three extra are meaning, manifest and seal."""
LARGEST_ARCHIVE = sum(LARGEST.values()) + LARGEST_MEANING + LARGEST_MANIFEST + LARGEST_SEAL + LARGEST_FILES + AROUND


def encode(contents: Mapping[str, bytes]) -> Iterator[bytes]:
    """Yields a bundle's zip archive in pieces, from its files by name. The names must be those of a bundle."""
    directory, offset = [], 0
    for name in sorted(contents):
        data, written = contents[name], name.encode("ascii")
        same = (20, 0, 0, 0, DAY, zlib.crc32(data), len(data), len(data), len(written), 0)
        yield HEADER.pack(FIRST, *same) + written
        yield data
        directory.append(ENTRY.pack(b"PK\x01\x02", MADE_BY, *same, 0, 0, 0, MODE, offset) + written)
        offset += HEADER.size + len(written) + len(data)
    entries = b"".join(directory)
    yield entries + END.pack(b"PK\x05\x06", 0, 0, len(directory), len(directory), len(entries), offset, 0)


def decode(archive: bytes) -> tuple[dict[str, bytes], str]:
    """Reads a bundle's zip archive. Returns the readable files by name, and the fault: empty only if every byte is what
    `encode` writes."""
    contents: dict[str, bytes] = {}
    place, last = 0, ""
    while archive[place : place + 4] == FIRST:
        if place + HEADER.size > len(archive):
            return contents, "it is truncated in a header"
        _, _, _, method, _, _, _, packed, size, length, _ = HEADER.unpack_from(archive, place)
        written = archive[place + HEADER.size : place + HEADER.size + length]
        name = written.decode("ascii", "replace")
        most = largest(name)
        if len(contents) == MOST_MEMBERS:
            return contents, f"it has more than {MOST_MEMBERS} members"
        if most is None:
            return contents, f"unknown member name: {name[:100]!a}"
        if name <= last:
            return contents, f"{name} is a duplicate or out of order"
        if method or packed != size:
            return contents, f"{name} is compressed"
        if size > most:
            return contents, f"{name} is larger than {most} bytes"
        place += HEADER.size + length
        if place + size > len(archive):
            return contents, f"it is truncated in {name}"
        contents[name] = archive[place : place + size]
        place, last = place + size, name
    place = 0
    for piece in encode(contents):
        if archive[place : place + len(piece)] != piece:
            return contents, "it is not in canonical form"
        place += len(piece)
    return contents, "" if place == len(archive) else "it has data after its end"
