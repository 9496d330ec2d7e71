"""Wraps lines for a terminal between words; a terminal alone breaks them anywhere.

Invariants: no character of a text is lost, and output to a pipe or file is not wrapped.
"""

from __future__ import annotations

NARROWEST = 30
"""Minimum columns for text beside its indent; narrower terminals wrap by themselves."""


def wrapped(text: str, columns: int | None, *, indent: int | None = None, used: int = 0) -> str:
    """Wraps a text at `columns`. Continuation lines start at `indent`, by default that of their line; `used` columns of
    the first line are already taken."""
    if columns is None or all(len(line) + used <= columns for line in text.split("\n")):
        return text
    return "\n".join(
        _broken(line, columns, indent, used if number == 0 else 0) for number, line in enumerate(text.split("\n"))
    )


def _broken(line: str, columns: int, indent: int | None, used: int) -> str:
    own = len(line) - len(line.lstrip(" "))
    before = own if indent is None else indent
    if len(line) + used <= columns or columns - before < NARROWEST:
        return line
    lines, left = [], columns - used
    rest, least = line, own
    while len(rest) > left:
        # Only between words: behind the indent, at the last blank that fits, else at the first one.
        at = rest.rfind(" ", least + 1, left + 1)
        at = at if at > 0 else rest.find(" ", max(left, least + 1))
        if at < 0 or not rest[at:].strip(" "):
            break
        lines.append(rest[:at].rstrip(" "))
        rest, left, least = " " * before + rest[at:].lstrip(" "), columns, before
    return "\n".join([*lines, rest])
