"""Layout of a bundle: file names, size limits, manifest and canonical JSON.

JSON in a bundle is canonical (sorted keys, no spaces, ASCII, one line end), so that equal content has equal bytes.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable
from typing import Any, Literal

from pydantic import Field

from appliance.records.record import Record
from appliance.records.rollouts import Role, ToolCall
from common.errors import HintedError
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
MOST_PARTS = 8_000_000
"""Maximum number of brackets and commas in a transcript, including those in its texts."""
MOST_NESTED = 100
"""Maximum nesting of arrays and objects in any file; output nests them further."""
FILE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}", re.ASCII)


def largest(name: str) -> int | None:
    """Returns the size limit of a bundle file, None for a name that no bundle has."""
    if name in LARGEST:
        return LARGEST[name]
    folder, _, file = name.partition("/")
    if folder == FILES and FILE_NAME.fullmatch(file):
        return LARGEST_FILE
    return {MEANING: LARGEST_MEANING, MANIFEST: LARGEST_MANIFEST, SEAL: LARGEST_SEAL}.get(name)


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


def strict(data: bytes) -> Any:
    """Parses JSON strictly. Raises ValueError for bad UTF-8, duplicate names, NaN, and deep nesting."""
    try:
        found = json.loads(data.decode("utf-8"), object_pairs_hook=_once, parse_constant=_no_constant)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    level = [found]
    for _ in range(MOST_NESTED):
        level = [inner for one in level if isinstance(one, dict | list) for inner in _parts(one)]
        if not level:
            return found
    raise ValueError("nested too deeply")


def _parts(value: dict[str, Any] | list[Any]) -> Iterable[Any]:
    return value.values() if isinstance(value, dict) else value


def require_few_parts(data: bytes) -> None:
    """Raises ValueError for JSON of mostly brackets and commas, which would take many times its size to parse."""
    if sum(data.count(mark) for mark in (b"[", b"{", b",")) > MOST_PARTS:
        raise ValueError(f"has more than {MOST_PARTS} parts")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name occurs twice")
    return found


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")
