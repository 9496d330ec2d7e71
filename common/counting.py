"""Formats a count with its noun: `1 warning`, `2 warnings`, `0 tries`."""

from __future__ import annotations


def counted(count: int, noun: str) -> str:
    """Returns a count and a regular noun, in the plural unless the count is 1. `noun` is in the singular."""
    if count == 1:
        return f"1 {noun}"
    if noun.endswith("y") and noun[-2] not in "aeiou":
        return f"{count} {noun[:-1]}ies"
    return f"{count} {noun}{'es' if noun.endswith(('s', 'x', 'ch', 'sh')) else 's'}"
