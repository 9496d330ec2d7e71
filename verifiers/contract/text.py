"""How texts are cut and escaped for lines that people read."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate

MAX_SHOWN = 200


def clip(text: str, most: int = MAX_SHOWN) -> str:
    """The text, or its beginning with `…` at the end: at most so many characters."""
    return text if len(text) <= most else text[: most - 1] + "…"


def escaped(text: str, most: int = MAX_SHOWN) -> str:
    """The beginning of a hostile text, so many characters of it, with everything but printable ASCII escaped."""
    return ascii(text[:most])[1:-1] + ("..." if len(text) > most else "")


def clip_size(text: str, most: int) -> str:
    """The text, or its beginning and `…`: what has to fit somewhere takes so many bytes at most, escaped as ASCII."""
    sizes = accumulate(len(character.encode("ascii", "backslashreplace")) for character in text[: most + 1])
    count = sum(size <= most for size in sizes)
    return text if count == len(text) else text[:count] + "…"


def one_line(text: str) -> str:
    """The words of a text in one line, clipped."""
    return clip(" ".join(text.split()))


def quoted(text: str) -> Iterator[str]:
    """Its lines, behind blanks: what belongs to the line before."""
    yield from (f"    {line}" for line in text.splitlines() or [""])
