"""Compares answers in words: the same after folding, or two ways of saying the same."""

from __future__ import annotations

import re

from verifiers.answers.grammar.vocabulary import SHORT_WORDS

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
ARTICLE = re.compile(r"^(?:the|a|an) (?=\S)", re.IGNORECASE)
BLANKS = re.compile(r"\s+")


LETTERS = re.compile(r"[^\W\d_]+")
SYMBOL = re.compile(r"(?=.*[a-z])(?:[A-Z][a-z]?){2,}|[a-z]+[A-Z].*")
"""`NaCl`, `pH`: capitals inside."""
PAIRED = re.compile(r"(?:(.)\1)+", re.IGNORECASE)
"""`Aa`, `BB`, `AaBb`: alleles."""


def same_case(first: str, second: str) -> bool:
    """Says whether two texts of the same words mean the same by their capitals: they count in a symbol only.

    A word of one or two letters is one, unless it is a word of English that is not in capitals: `Co` is
    no `CO`, and `On` is `on`; `no` and `ok` are words in capitals, too."""
    pairs = list(zip(*(LETTERS.findall(trimmed(text)) for text in (first, second)), strict=False))
    return all(one == other or not (_is_symbol(one) or _is_symbol(other)) for one, other in pairs)


def _is_symbol(word: str) -> bool:
    short = len(word) < 3 and (
        len(word) == 1 or word.lower() not in SHORT_WORDS or (word.isupper() and word not in ("NO", "OK"))
    )
    return bool(short or SYMBOL.fullmatch(word) or PAIRED.fullmatch(word))


def trimmed(text: str) -> str:
    """Returns a text with single blanks, without a leading article, quotes and a full stop at the end."""
    return ARTICLE.sub("", BLANKS.sub(" ", text).strip().strip("\"'").rstrip(".").strip())


def same_words(first: str, second: str) -> bool:
    left, right = trimmed(first.lower()), trimmed(second.lower())
    if left == right:
        return bool(left)
    return any(left in same and right in same for same in SAME)
