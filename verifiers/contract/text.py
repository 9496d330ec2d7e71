"""Clipping and escaping of text for display."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate

MAX_SHOWN = 200


def clip(text: str, most: int = MAX_SHOWN) -> str:
    """Returns the text, truncated to `most` characters with a final `…`."""
    return text if len(text) <= most else text[: most - 1] + "…"


def escaped(text: str, most: int = MAX_SHOWN) -> str:
    """Returns the first `most` characters of untrusted text, with everything but printable ASCII escaped."""
    return ascii(text[:most])[1:-1] + ("..." if len(text) > most else "")


def clip_size(text: str, most: int) -> str:
    """Truncates the text, with a final `…`, so that its ASCII-escaped form has at most `most` bytes."""
    sizes = accumulate(len(character.encode("ascii", "backslashreplace")) for character in text[: most + 1])
    count = sum(size <= most for size in sizes)
    return text if count == len(text) else text[:count] + "…"


def one_line(text: str) -> str:
    """Joins the words of a text into one line, clipped."""
    return clip(" ".join(text.split()))


def quoted(text: str) -> Iterator[str]:
    """Yields the lines of a text, indented as a continuation of the line before."""
    yield from (f"    {line}" for line in text.splitlines() or [""])
