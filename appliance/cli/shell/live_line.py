"""One line of a terminal that is written over, and what becomes of such lines when the terminal is made narrower.

What always holds: a line is drawn in fewer cells than the terminal has, so that it is one row. A terminal that is made
narrower breaks what it shows into more rows, as nearly all do now; those are counted and cleared, too.
"""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Iterable
from contextlib import suppress
from typing import TextIO

from appliance.text.printable import printable

USUAL_COLUMNS = 80
"""Of a terminal that does not know its width."""


def columns_of(stream: TextIO) -> int | None:
    """The width of the terminal that a stream is, or what COLUMNS says; None of anything else."""
    if not stream.isatty():
        return None
    with suppress(ValueError):
        if (told := int(os.environ.get("COLUMNS", ""))) > 0:
            return told
    with suppress(OSError, ValueError):  # it is none of the kernel's, or closed
        return os.get_terminal_size(stream.fileno()).columns or USUAL_COLUMNS
    return USUAL_COLUMNS


def cells(text: str) -> int:
    """How wide a terminal draws it: a wide character has two cells."""
    return len(text) if text.isascii() else sum(map(_cells, text))


def clipped(text: str, columns: int) -> str:
    """What of a text fits into so many cells; what is cut off is shown as one `…`."""
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
    """How many rows a terminal of so many columns makes of lines that are so many cells wide."""
    return sum(max(1, -(-width // columns)) for width in widths)


class LiveLine:
    """A line that `show` writes over; an empty text clears it. Text from anywhere is escaped."""

    def __init__(self) -> None:
        self._width = 0

    def show(self, stream: TextIO, text: str, columns: int) -> None:
        """`columns` is how wide the terminal is now."""
        line = clipped(printable(text), columns - 1)
        broken = rows_of([self._width], columns) - 1
        stream.write("\r\x1b[K" + "\x1b[A\x1b[K" * broken + line)  # also with NO_COLOR: it is no colour
        stream.flush()
        self._width = cells(line)


def _cells(character: str) -> int:
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
