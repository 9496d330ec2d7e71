"""One terminal line that is overwritten in place, also after the terminal was made narrower.

Invariants: a line is narrower than the terminal, so it is one row. When a narrower terminal rewraps it into several
rows, as most do, those are counted and cleared.
"""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Iterable
from contextlib import suppress
from typing import TextIO

from appliance.text.printable import printable

USUAL_COLUMNS = 80
"""Width of a terminal that does not report one."""


def columns_of(stream: TextIO) -> int | None:
    """Returns the width of a terminal stream in columns, or COLUMNS; None if the stream is not a terminal."""
    if not stream.isatty():
        return None
    with suppress(ValueError):
        if (told := int(os.environ.get("COLUMNS", ""))) > 0:
            return told
    with suppress(OSError, ValueError):  # it is none of the kernel's, or closed
        return os.get_terminal_size(stream.fileno()).columns or USUAL_COLUMNS
    return USUAL_COLUMNS


def cells(text: str) -> int:
    """Returns the width of a text in terminal cells; wide characters have two."""
    return len(text) if text.isascii() else sum(map(_cells, text))


def clipped(text: str, columns: int) -> str:
    """Cuts a text to `columns` cells; a cut text ends with `…`."""
    if cells(text) <= columns:
        return text
    kept, room = [], columns - 1
    for character in text:
        room -= _cells(character)
        if room < 0:
            break
        kept.append(character)
    return "".join([*kept, "…"])[:columns]


def rows_of(widths: Iterable[int], columns: int) -> int:
    """Returns the number of rows that lines of these widths take on a terminal of `columns` columns."""
    return sum(max(1, -(-width // columns)) for width in widths)


class LiveLine:
    """A terminal line that `show` overwrites in place; an empty text clears it. Text is escaped."""

    def __init__(self) -> None:
        self._width = 0

    def show(self, stream: TextIO, text: str, columns: int) -> None:
        """Overwrites the terminal line with a text, cut to fit; `columns` is the terminal's present width."""
        line = clipped(printable(text), columns - 1)
        broken = rows_of([self._width], columns) - 1
        stream.write("\r\x1b[K" + "\x1b[A\x1b[K" * broken + line)  # also with NO_COLOR: it is no colour
        stream.flush()
        self._width = cells(line)


def _cells(character: str) -> int:
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
