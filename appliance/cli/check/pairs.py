"""A file of pairs: each line is a JSON object with a spec and a submission.

Invariants: the whole file is read and all its faults are reported before the first pair is checked; at most one line is
in memory; unknown keys never leave this module. A submission may be any text, which its verifier judges.

  an answer:   {"id": "a1", "gold": "1/2", "prediction": "0.5"}
  any other:   {"id": "s1", "spec": {...}, "submission": "..."}

`spec` has fields of the spec, which override those of the command line; an answer may have it, too. Options in a
claim's own text (`set-info`) count as fields of `spec` unless it sets them. A number where text is expected is taken as
written; a submission of `null` is the empty text.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Any, BinaryIO, NamedTuple

from pydantic import ValidationError

from appliance.cli.check.options import key_option
from appliance.errors import AssayError, UsageError
from common.bounded_models import first_fault
from common.strict_json import Bounds, NotJsonError, require_bounds
from verifiers.contract.errors import SpecError
from verifiers.contract.kinds import Kind
from verifiers.contract.text import clip
from verifiers.registry.spec import SPEC, Spec

MAX_LINE = 8 << 20
"""Maximum bytes of a line; escaped again for a worker, it still fits into a frame."""
BOUNDS = Bounds(MAX_LINE)
MAX_ID = 200
SHOWN = 10
"""Number of faults shown individually."""
BLOCK = 1 << 20


class PairItem(NamedTuple):
    id: str | int
    spec: Spec
    submission: str


class PairsScan(NamedTuple):
    """Number of pairs in a file, and SHA-256 of the file."""

    total: int
    digest: str


class _FaultError(Exception):
    """A fault in one line of a file of pairs."""


class _Written(float):
    """A JSON number with its original text."""

    text: str

    def __new__(cls, text: str) -> _Written:
        made = super().__new__(cls, text)
        made.text = text
        return made


class PairsFile:
    """File of pairs of spec and submission, as a stream that can be read twice. `base` are spec fields for every
    line."""

    def __init__(self, stream: BinaryIO, name: str, kind: Kind, base: dict[str, Any]) -> None:
        self._stream = stream
        self._name = name
        self._kind = kind
        self._key = key_option(kind)
        self._base = {**base, "kind": kind.name}
        self._digest = ""

    def scan(self) -> PairsScan:
        """Reads the whole file of pairs once, and returns its count and digest. Raises AssayError that names the first
        faulty lines."""
        faults: list[str] = []
        ids: dict[str, int] = {}
        count = faulty = 0
        hashed = hashlib.sha256()
        for number, line in self._lines(hashed):
            try:
                item = self._item(line)
                before = ids.setdefault(str(item.id), number)
                if before != number:
                    raise _FaultError(f"duplicate id {clip(str(item.id), 60)} (also on line {before})")
                count += 1
            except _FaultError as fault:
                faulty += 1
                if len(faults) < SHOWN:
                    faults.append(f"line {number}: {fault}")
        if faults:
            more = f"\nand {faulty - SHOWN} more lines" if faulty > SHOWN else ""
            raise UsageError(
                f"{self._name} is invalid; nothing was checked\n" + "\n".join(faults) + more,
                "correct these lines; see docs/verifiers.md for the format, docs/verifiers/ for the fields of a spec",
            )
        if not count:
            raise UsageError(f"{self._name} contains no pairs", "write one JSON object per line")
        self._digest = hashed.hexdigest()
        return PairsScan(count, self._digest)

    def items(self) -> Iterator[PairItem]:
        """Yields every pair in file order. Raises AssayError if the file changed since the scan."""
        hashed = hashlib.sha256()
        try:
            for _, line in self._lines(hashed):
                yield self._item(line)
        except _FaultError:
            raise self._changed() from None
        if hashed.hexdigest() != self._digest:
            raise self._changed()

    def _changed(self) -> AssayError:
        return UsageError(
            f"{self._name} changed during the check", "start again with another --out, and do not change the file"
        )

    def _lines(self, hashed: Any) -> Iterator[tuple[int, bytes]]:
        """Yields number and bytes of each non-blank line; only the beginning of a line that is too long."""
        self._stream.seek(0)
        number = 0
        while line := self._stream.readline(MAX_LINE + 1):
            number += 1
            hashed.update(line)
            if number == 1:
                line = line.removeprefix(b"\xef\xbb\xbf")
            if len(line) > MAX_LINE:
                rest = line
                while rest and not rest.endswith(b"\n"):
                    rest = self._stream.readline(BLOCK)
                    hashed.update(rest)
            if not line.isspace() and line:
                yield number, line

    def _item(self, line: bytes) -> PairItem:
        if len(line) > MAX_LINE:
            raise _FaultError(f"longer than {MAX_LINE >> 20} MiB")
        found = _object(line)
        name = _id(found)
        own = self._fields(found)
        fields = {**self._base, **self._asked(own), **own}
        if self._key is not None:
            fields[self._key.field] = _text(found, self._key.flag.removeprefix("--"))
        try:
            spec = SPEC.validate_python(fields)
        except ValidationError as error:
            raise _FaultError(f"spec: {first_fault(error)}") from None
        return PairItem(name, spec, _text(found, self._kind.submission.key, empty=True))

    def _asked(self, own: dict[str, Any]) -> dict[str, Any]:
        """Returns the spec fields that options in a line's own texts set, such as `set-info` in a claim."""
        asked: dict[str, Any] = {}
        for option in self._kind.options:
            if option.asked is not None and isinstance(text := own.get(option.field), str):
                try:
                    asked |= option.asked.load()(text)
                except SpecError as error:
                    raise _FaultError(f"spec: {error}") from None
        return asked

    def _fields(self, found: dict[str, Any]) -> dict[str, Any]:
        fields = found.get("spec", {})
        if not isinstance(fields, dict):
            raise _FaultError("`spec` is not an object")
        if fields.get("kind", self._kind.name) != self._kind.name:
            raise _FaultError(f"the kind of its spec is not {self._kind.name!r}")
        if self._key is not None and self._key.field in fields:
            key = self._key.flag.removeprefix("--")
            raise _FaultError(f"`{key}` already sets that: remove `{self._key.field}` from `spec`")
        return fields


def _object(line: bytes) -> dict[str, Any]:
    try:
        require_bounds(line, BOUNDS)
        found = json.loads(line, object_pairs_hook=_once, parse_float=_Written, parse_constant=_no_constant)
    except _FaultError:
        raise
    except NotJsonError as error:
        raise _FaultError(str(error)) from None
    except UnicodeDecodeError as error:
        raise _FaultError(f"not UTF-8 at byte {error.start}") from None
    except json.JSONDecodeError as error:
        raise _FaultError(f"not JSON at column {error.colno}: {error.msg}") from None
    except ValueError:
        raise _FaultError("a number with too many digits: write it as text") from None
    if not isinstance(found, dict):
        raise _FaultError("not a JSON object")
    return found


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise _FaultError("a name occurs twice in an object")
    return found


def _no_constant(name: str) -> Any:
    raise _FaultError(f"{name} is not JSON")


def _id(found: dict[str, Any]) -> str | int:
    if "id" not in found:
        raise _FaultError("`id` is missing")
    name = found["id"]
    if isinstance(name, bool) or not isinstance(name, str | int):
        raise _FaultError("`id` is neither text nor a whole number")
    if not 0 < len(str(name)) <= MAX_ID:
        raise _FaultError(f"`id` is empty or longer than {MAX_ID} characters")
    return name


def _text(found: dict[str, Any], key: str, *, empty: bool = False) -> str:
    """Returns the text of a key in a line of pairs, or a number as written. With `empty`, `null` is the empty text.
    Raises _FaultError if it is neither."""
    if key not in found:
        raise _FaultError(f"`{key}` is missing")
    value = found[key]
    if isinstance(value, str):
        return value
    if isinstance(value, _Written):
        return value.text
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if value is None and empty:
        return ""
    raise _FaultError(f"`{key}` is not text")
