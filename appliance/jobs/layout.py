"""Layout of a bundle: file names, size limits, manifest and canonical JSON, and its one valid encoding as a zip file.

JSON in a bundle is canonical (sorted keys, no spaces, ASCII, one line end), so that equal content has equal bytes.

Invariants: equal contents give equal bytes. Nothing is compressed, no time, owner or comment is stored, and members are
contiguous in the order of their names. An archive is read in one pass within fixed bounds, then encoded again and
compared to the last byte; so no byte is free, whatever other unpackers make of it. Any zip program opens it. Names are
never used to open anything.

Format: PKWARE's APPNOTE.TXT 6.3.3, sections 4.3.7 (local header), 4.3.12 (directory), 4.3.16 (end).
"""

from __future__ import annotations

import hashlib
import json
import re
import struct
import zlib
from collections.abc import Iterator, Mapping
from typing import Any, Literal

from pydantic import Field

from appliance.records.record import Record
from appliance.records.rollouts import Role, ToolCall
from common.errors import HintedError
from common.strict_json import Bounds
from verifiers.contract.statement import StatementPart

SCHEMA = 2

ANSWER = "artifact.txt"
QUESTION = "question.txt"
SPEC = "spec.json"
VERDICT = "verdict.json"
TRANSCRIPT = "transcript.json"
VERSIONS = "versions.json"
STATEMENT = "statement.json"
MEANING = "meaning.json"
FILES = "files"
"""Folder of the question's files."""
MANIFEST = "manifest.json"
SEAL = "seal.json"

LARGEST: dict[str, int] = {
    ANSWER: 1 << 20,
    QUESTION: 1 << 20,
    SPEC: 4 << 20,
    VERDICT: 1 << 20,
    TRANSCRIPT: 64 << 20,
    VERSIONS: 1 << 20,
    STATEMENT: 1 << 18,
}
"""Size limits in bytes of the files that every bundle has beside its manifest."""
LARGEST_MEANING = 2 << 20
LARGEST_MANIFEST = 1 << 14
LARGEST_SEAL = 1 << 20
LARGEST_FILE = 8 << 20
MOST_FILES = 16
LARGEST_FILES = 32 << 20
"""Size limit in bytes for all of `files` together."""
BOUNDS = Bounds(LARGEST[SPEC], depth=99)
"""Bounds of JSON in any file but the transcript; output nests it further."""
TRANSCRIPT_BOUNDS = Bounds(LARGEST[TRANSCRIPT], values=2_000_000, containers=400_000, depth=99)
FILE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}", re.ASCII)


def largest(name: str) -> int | None:
    """Returns the size limit of a bundle file, None for a name that no bundle has."""
    if name in LARGEST:
        return LARGEST[name]
    folder, _, file = name.partition("/")
    if folder == FILES and FILE_NAME.fullmatch(file):
        return LARGEST_FILE
    return {MEANING: LARGEST_MEANING, MANIFEST: LARGEST_MANIFEST, SEAL: LARGEST_SEAL}.get(name)


def bounds_of(name: str) -> Bounds:
    """Returns the bounds of the JSON in a bundle's file."""
    return TRANSCRIPT_BOUNDS if name == TRANSCRIPT else BOUNDS


class BundleError(HintedError):
    """A bundle cannot be written, or there is none to read. `hint` says what to do; `exit_code` is that of usage."""

    exit_code = 2


class ListedFile(Record):
    name: str
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    bytes: int = Field(ge=0)


class BundleManifest(Record):
    """Lists every file of a bundle, except this manifest and the seal, by name, ascending."""

    schema_version: Literal[2]
    files: tuple[ListedFile, ...]


class ArtifactStatement(Record):
    """Claims of a bundle about its answer: who found it, and what carries each part."""

    solved_by: str
    claims: tuple[StatementPart, ...]


class TranscriptEntry(Record):
    """A message in a bundle's transcript. Its text is the policy model's or the guest's: hostile."""

    parent: int | None
    role: Role
    text: str
    sampled: bool
    call: ToolCall | None = None


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def canonical(value: Any) -> bytes:
    """Encodes plain data as canonical JSON. Raises ValueError for NaN and infinities, TypeError for anything but plain
    data."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False).encode("ascii") + b"\n"


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
