"""Reads hand-written TOML files.

Invariants: only regular files are read, without blocking on a pipe or device, and no more than the requested bytes;
every unreadable text raises TomlError.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import tomllib
from pathlib import Path
from typing import Any

MOST_BYTES = 1 << 20
"""Largest hand-written file, in bytes."""
MOST_PARTS = 200
"""Most parts of a dotted key: the parser's time and memory grow quadratically with them."""
_PART = r"""(?:[A-Za-z0-9_-]++|"(?:[^"\\\n]|\\.)*+"|'[^'\n]*+')"""
_LONG_KEY = re.compile(rf"(?<![A-Za-z0-9_\\-]){_PART}(?:[ \t]*+\.[ \t]*+{_PART}){{{MOST_PARTS}}}")


MOST_TABLES, MOST_LINES = 200_000, 1_000_000
"""Most lists and tables, and most line ends and commas, outside texts: what they hold is in memory at once."""
MOST_KEYS = 10_000
"""Most keys of one table, each of which may be an error."""
_TEXT = re.compile(
    r'"""(?:[^"\\]++|\\.|"(?!""))*+(?:"""|\\?\Z)|"(?:[^"\\\n]++|\\.)*+"?'
    r"|'''(?:[^']++|'(?!''))*+(?:'''|\Z)|'[^'\n]*+'?|#[^\n]*+",
    re.DOTALL,
)
"""A text or comment, also one without an end."""


class TomlError(ValueError):
    """Invalid or unsupported TOML; the message says where, or what."""


def beginning(path: Path, most: int) -> bytes:
    """Reads at most `most` + 1 bytes of a regular file; a longer result means the file is too large.

    Raises OSError, also if the file is not regular.
    """
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as source:
        mode = os.fstat(source.fileno()).st_mode
        if not stat.S_ISREG(mode):
            raise OSError(errno.EINVAL, "not a regular file", str(path))
        return source.read(most + 1)


def read_toml(text: str) -> dict[str, Any]:
    """Parses TOML text. Raises TomlError."""
    if _LONG_KEY.search(text):
        raise TomlError(f"a key has more than {MOST_PARTS} parts")
    if _outside(text, "[{") > MOST_TABLES:
        raise TomlError(f"more than {MOST_TABLES} lists and tables")
    if _outside(text, ",\n") > MOST_LINES:
        raise TomlError(f"more than {MOST_LINES} values")
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise TomlError(str(error)) from error
    except RecursionError:
        raise TomlError("nested too deeply") from None
    except ValueError as error:
        raise TomlError("a number has too many digits") from error
    _fits(found)
    return found


def _outside(text: str, marks: str) -> int:
    """Counts marks outside the texts and comments of TOML."""
    if sum(map(text.count, marks)) < MOST_TABLES:
        return 0
    inside = sum(found[0].count(mark) for found in _TEXT.finditer(text) for mark in marks)
    return sum(map(text.count, marks)) - inside


def _fits(found: dict[str, Any]) -> None:
    """Raises TomlError for integers beyond TOML's 64 bits, which the parser accepts, and for a table of many keys."""
    left: list[Any] = [found]
    while left:
        one = left.pop()
        if isinstance(one, dict) and len(one) > MOST_KEYS:
            raise TomlError(f"a table with more than {MOST_KEYS} keys")
        if isinstance(one, dict | list):
            left.extend(one.values() if isinstance(one, dict) else one)
        elif isinstance(one, int) and not -(1 << 63) <= one < 1 << 63:
            raise TomlError("a number has too many digits")


def line_of(location: tuple[str, ...], text: str) -> int | None:
    """Returns the line of a key or list entry in TOML text, or of its section's head if the key is missing. None if
    neither is written plainly, one entry per line."""
    numbers = [place for place, part in enumerate(location) if part.isdigit()]
    if numbers:
        above = line_of(location[: numbers[0]], text)
        entry = int(location[numbers[0]])
        tables = f"[[{'.'.join(location[: numbers[0]])}]]"
        heads = [number for number, line in enumerate(text.splitlines(), start=1) if line.strip() == tables]
        if entry < len(heads):
            return heads[entry]
        lines = text.splitlines()[above or 0 :]
        rows = [number for number, line in enumerate(lines, start=(above or 0) + 1) if line.strip().startswith("{")]
        return rows[entry] if above is not None and entry < len(rows) else above
    section: tuple[str, ...] = ()
    head: int | None = None
    for number, line in enumerate(text.splitlines(), start=1):
        stripped = line.split("#")[0].strip()
        if stripped.startswith("["):
            section = tuple(part.strip().strip("\"'") for part in stripped.strip("[]").split("."))
            if section == location:
                return number
            if section == location[:-1]:
                head = number
        elif "=" in stripped and (*section, stripped.split("=")[0].strip().strip("\"'")) == location:
            return number
    return head
