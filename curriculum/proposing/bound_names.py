"""A proposition of Lean with numbers in the place of its bound names: two that differ in nothing else become the same.

What always holds: pure; linear in the text. A name is bound up to the end of the bracket that it is bound in. Whatever
the text means, only a key that says whether something is new is made of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

_WORD = re.compile(r"[λΠΣ]|[^\W\d][\w'!?]*(?:\.[\w'!?]+)*|\d+|=>|->|:=|\S")
_BINDERS = frozenset(("∀", "∃", "λ", "fun", "Σ", "Π"))
_OPEN = dict(zip("([{⟨⦃", ")]}⟩⦄", strict=True))
_CLOSED = frozenset(_OPEN.values())
_ARROWS = ("→", "->")


def without_names(proposition: str) -> str:
    """Its words, with a space between them."""
    words = _WORD.findall(proposition)
    ends = _ends(words)
    scopes: list[dict[str, str]] = [{}]
    said: list[str] = []
    count = 0
    for at, word in enumerate(words):
        names: Iterator[str] = iter(())
        if word in _BINDERS:
            names = _bound(words, at + 1, ends)
        elif word == "(" and words[ends[at] + 1 : ends[at] + 2] and words[ends[at] + 1] in _ARROWS:
            names = _before_colon(words, at + 1)
        for name in names:
            scopes[-1][name] = f"#{count}"
            count += 1
        if word in _OPEN:
            scopes.append({})
        elif word in _CLOSED and len(scopes) > 1:
            scopes.pop()
        first, dot, rest = word.partition(".")
        known = next((scope[first] for scope in reversed(scopes) if first in scope), first)
        said.append(known + dot + rest)
    return " ".join(said)


def _ends(words: Sequence[str]) -> dict[int, int]:
    """Where each bracket closes."""
    found: dict[int, int] = {}
    open_: list[int] = []
    for at, word in enumerate(words):
        if word in _OPEN:
            open_.append(at)
        elif word in _CLOSED and open_:
            found[open_.pop()] = at
    return found | dict.fromkeys(open_, len(words))


def _bound(words: Sequence[str], at: int, ends: dict[int, int]) -> Iterator[str]:
    """The names behind a word that binds: bare ones, or in brackets with their type."""
    while at < len(words):
        if words[at] in _OPEN:
            yield from _before_colon(words, at + 1)
            at = ends[at]
        elif _is_name(words[at]):
            yield words[at]
        elif words[at] != "!":
            return
        at += 1


def _before_colon(words: Sequence[str], at: int) -> Iterator[str]:
    """`x` and `y` of `x y : T`; nothing where no such list stands."""
    end = at
    while end < len(words) and _is_name(words[end]):
        end += 1
    if end < len(words) and words[end] == ":":
        yield from words[at:end]


def _is_name(word: str) -> bool:
    return re.fullmatch(r"[^\W\d][\w'!?]*", word) is not None
