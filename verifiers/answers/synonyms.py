"""Compares answers in words: the same after folding, or two ways of saying the same."""

from __future__ import annotations

import re

SAME: tuple[frozenset[str], ...] = (
    frozenset(
        {"no solution", "no solutions", "there is no solution", "there are no solutions", "has no solution"}
        | {"no such solution", "empty set", "the empty set", "null set"}
    ),
    frozenset({"no real solution", "no real solutions", "there are no real solutions", "there is no real solution"}),
    frozenset({"does not exist", "dne", "doesn't exist", "it does not exist"}),
    frozenset({"none", "there are none", "there is none", "none exist"}),
    frozenset({"true", "t"}),
    frozenset({"false", "f"}),
    frozenset({"undefined", "not defined", "is undefined"}),
    frozenset({"infinitely many", "infinitely many solutions", "infinite solutions", "infinite number of solutions"}),
)
ARTICLE = re.compile(r"^(?:the|a|an) (?=\S)")
BLANKS = re.compile(r"\s+")


def folded(text: str) -> str:
    """Makes a text lower case with single blanks, without a leading article, quotes and a full stop at the end."""
    plain = BLANKS.sub(" ", text).strip().strip("\"'").rstrip(".").strip().lower()
    return ARTICLE.sub("", plain)


def same_words(first: str, second: str) -> bool:
    left, right = folded(first), folded(second)
    if left == right:
        return bool(left)
    return any(left in same and right in same for same in SAME)
