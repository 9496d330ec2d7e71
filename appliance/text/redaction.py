"""Finds text that matches the owner's redaction rules, before anything is written. Pure.

Invariants: nothing is cut out of a text, since the rest could still reveal it; on a match the caller keeps none of it.
Each text is searched as it is, with escapes resolved (in JSON a line end before a key is two letters), and, if it is
JSON, string by string.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

USUAL = (
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----",
    r"\b(?:sk|pk|rk)[-_][A-Za-z0-9_-]{20,}",
    r"\bgh[pousr]_[A-Za-z0-9]{20,}",
    r"\bAKIA[A-Z0-9]{16}\b",
    r"(?i)\bbearer +[A-Za-z0-9._~+/-]{16,}",
)
"""Patterns of keys of well-known services; an owner's list replaces them."""
DEPTH = 4
"""Maximum nesting of escapes and JSON within text."""
_ESCAPE = re.compile(
    r"\\(?:u([0-9a-fA-F]{4})|U(000[0-9a-fA-F]{5}|0010[0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|(.))", re.DOTALL
)
_MEANT = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}


class Redaction:
    """Redaction rules, as Python regular expressions."""

    def __init__(self, patterns: Sequence[str]) -> None:
        """Compiles the redaction rules. Raises ValueError for an invalid regular expression, or one that matches empty
        text."""
        self._rules: list[re.Pattern[str]] = []
        for pattern in patterns:
            try:
                rule = re.compile(pattern)
            except re.error as error:
                raise ValueError(f"invalid regular expression {pattern!r}: {error}") from error
            if rule.search(""):
                raise ValueError(f"{pattern!r} matches empty text")
            self._rules.append(rule)

    def rule_in(self, values: Iterable[object]) -> int | None:
        """Returns the number, from 1, of a rule that matches any text in the values; None if none does."""
        if not self._rules:
            return None
        for value in values:
            for text in texts_in(value):
                for number, rule in enumerate(self._rules, 1):
                    if rule.search(text):
                        return number
        return None


def texts_in(value: object) -> Iterator[str]:
    """Yields every text in a JSON value, including field names: as it is, unescaped, and nested JSON."""
    left: list[tuple[object, int]] = [(value, 0)]
    while left:
        one, depth = left.pop()
        if isinstance(one, Mapping):
            left += [(part, depth) for pair in one.items() for part in pair]
        elif isinstance(one, list | tuple):
            left += [(part, depth) for part in one]
        elif isinstance(one, str):
            yield one
            if depth < DEPTH:
                left += [(part, depth + 1) for part in _inside(one)]


def _inside(text: str) -> Iterator[object]:
    if "\\" in text:
        # JSON writes a character beyond the first 65,536 as two halves.
        halves = _ESCAPE.sub(_unescaped, text).encode("utf-16", "surrogatepass")
        yield halves.decode("utf-16", "surrogatepass")
    if text.lstrip()[:1] in ("{", "[", '"'):
        try:
            yield json.loads(text)
        except (ValueError, RecursionError):
            return


def _unescaped(found: re.Match[str]) -> str:
    number = found[1] or found[2] or found[3]
    return chr(int(number, 16)) if number else _MEANT.get(found[4], found[4])
