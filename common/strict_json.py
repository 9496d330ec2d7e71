r"""Reads JSON that somebody else wrote: strictly, and within bounds that are checked before anything is parsed.

Invariants: a text over a bound costs two passes over its bytes and is never parsed; what is parsed takes at most
BYTES_PER_VALUE bytes a value besides the text itself; two readers of an accepted text read the same (no duplicate
names, no NaN or infinities, no lone surrogates). JSON is read as RFC 8259 defines it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import isfinite
from typing import Any

BYTES_PER_VALUE = 240
"""Upper bound of what one parsed value takes in memory, besides the characters of texts: its object, its place in a
list or dict, and its name."""
MOST_DIGITS = 4_300
"""Maximum digits of an integer, as in Python."""

_TEXT = re.compile(rb'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)', re.DOTALL)
_SURROGATE = re.compile(rb"\\u[dD][89abABcdefCDEF]")
_NOT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))


class NotJsonError(ValueError):
    """Text that is not strict JSON, or exceeds a bound. The message fits "SUBJECT is unusable: MESSAGE"."""

    def __init__(self, message: str, *, other: bool = False) -> None:
        """Creates the error; `other` is true for text that no reader takes for JSON."""
        super().__init__(message)
        self.other = other


@dataclass(frozen=True)
class Bounds:
    """What a JSON text may hold, at most."""

    size: int
    """Bytes of UTF-8."""
    values: int = 100_000
    """Values, names of objects not counted."""
    containers: int = 100_000
    """Lists and objects."""
    names: int = 10_000
    """Names of one object."""
    depth: int = 64
    """Lists and objects inside each other."""


def require_bounds(data: bytes, bounds: Bounds) -> None:
    """Raises NotJsonError if JSON exceeds a bound, in time proportional to the size. Accepts text that is not JSON."""
    if len(data) > bounds.size:
        raise NotJsonError(f"longer than {bounds.size} bytes")
    if data.count(b'"') - data.count(b'\\"') > 4 * bounds.values:  # a value has at most a name and a text
        raise NotJsonError(f"more than {bounds.values} values")
    marks = _marks(data)
    opened, closed = marks.count(b"[") + marks.count(b"{"), marks.count(b"]") + marks.count(b"}")
    if marks.count(b",") + opened >= bounds.values:
        raise NotJsonError(f"more than {bounds.values} values")
    if max(opened, closed) > bounds.containers:
        raise NotJsonError(f"more than {bounds.containers} lists and objects")
    deepest = depth = 0
    for mark in marks.translate(None, _NOT_BRACKETS):
        depth += 1 if mark in b"[{" else -1
        deepest = max(deepest, depth)
    if deepest > bounds.depth:
        raise NotJsonError(f"nested more than {bounds.depth} deep")


def _marks(data: bytes) -> bytes | bytearray:
    """Returns JSON without its texts, in time and memory proportional to its size."""
    marks, at = bytearray(), 0
    for text in _TEXT.finditer(data):  # `sub` takes 180 bytes a text
        marks += data[at : text.start()]
        at = text.end()
    return marks + data[at:]


def read(
    text: bytes | str,
    bounds: Bounds,
    *,
    parse_float: Callable[[str], Any] | None = None,
    parse_int: Callable[[str], Any] = int,
) -> Any:
    """Parses JSON within the bounds. Raises NotJsonError."""
    try:
        data = text.encode("utf-8") if isinstance(text, str) else text
        decoded = data.decode("utf-8")
    except UnicodeEncodeError:
        raise NotJsonError("a lone surrogate") from None
    except UnicodeDecodeError as error:
        raise NotJsonError(f"not UTF-8 at byte {error.start}") from None
    require_bounds(data, bounds)
    try:
        value = json.loads(
            decoded,
            object_pairs_hook=partial(_object, bounds.names),
            parse_int=parse_int,
            parse_float=parse_float or _finite,
            parse_constant=_constant,
        )
        if _SURROGATE.search(data):
            json.dumps(value, ensure_ascii=False, default=str).encode("utf-8")
    except NotJsonError:
        raise
    except RecursionError:
        raise NotJsonError("nested too deeply") from None
    except UnicodeEncodeError:
        raise NotJsonError("a lone surrogate") from None
    except json.JSONDecodeError as error:
        where = f"line {error.lineno} column {error.colno}"
        raise NotJsonError(f"not JSON at {where}: {error.msg}", other=True) from None
    except ValueError:
        raise NotJsonError(f"an integer of more than {MOST_DIGITS} digits") from None
    return value


def _object(most: int, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(pairs) > most:
        raise NotJsonError(f"an object with more than {most} names")
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        twice = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise NotJsonError(f"duplicate name {twice[:40]!a}")
    return found


def _finite(text: str) -> float:
    if not isfinite(number := float(text)):
        raise NotJsonError(f"a number out of range ({text[:40]})")
    return number


def _constant(name: str) -> Any:
    raise NotJsonError(f"{name} is not JSON")
