"""Tokenizes a text so that copies have equal tokens, ignoring case, blanks and punctuation. Pure.

Invariants: equal tokens for texts that differ in case, blanks, line ends, punctuation, invisible characters and
compatible forms of Unicode; numbers and mathematical signs stay, because they are the question.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

GRAM = 8
"""Tokens per n-gram (GPT-3, 2005.14165, appendix C, uses 13; 8 finds shorter copies)."""
MOST_TOKENS = 20_000
"""Tokens read per text; the rest is ignored."""
NUMBER = "#"
_TOKEN = re.compile(r"\d+(?:\.\d+)?|[^\W\d_]+|[^\w\s]|_")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_PUNCTUATION = frozenset(".,;:!?\"'`´‘’“”…·«»()[]{}$\\_")
"""Marks that a copy may move, with brackets and LaTeX signs among them."""
_BEFORE_A_SIGN = frozenset("+-*/^=<>−×÷|~")


def tokens_of(text: str) -> tuple[str, ...]:
    """Returns a text's lower-case words, numbers and signs, in order."""
    plain = text[: 8 * MOST_TOKENS].casefold()
    if not plain.isascii():
        plain = unicodedata.normalize("NFKC", plain).casefold()
        plain = "".join(sign for sign in plain if unicodedata.category(sign) != "Cf")
    found = _TOKEN.findall(_THOUSANDS.sub("", plain))
    return tuple(token for token in found if token not in _PUNCTUATION)[:MOST_TOKENS]


def without_numbers(tokens: Sequence[str]) -> tuple[str, ...]:
    """Replaces each run of numbers among the tokens by one mark; a number includes its sign."""
    found: list[str] = []
    for place, token in enumerate(tokens):
        if is_number(token):
            if not found or found[-1] != NUMBER:
                found.append(NUMBER)
        elif not _is_sign(tokens, place):
            found.append(token)
    return tuple(found)


def _is_sign(tokens: Sequence[str], place: int) -> bool:
    """True if this + or - is the sign of a number, not an operator."""
    ahead = tokens[place] in "+-−" and place + 1 < len(tokens) and is_number(tokens[place + 1])
    return ahead and (place == 0 or tokens[place - 1] in _BEFORE_A_SIGN or tokens[place - 1].isalpha())


def is_number(token: str) -> bool:
    return token[0].isdigit()


def numbers_in(tokens: Sequence[str]) -> tuple[str, ...]:
    return tuple(token for token in tokens if is_number(token))


def grams_of(tokens: Sequence[str], size: int = GRAM) -> set[int]:
    """Returns hashes of all runs of `size` consecutive tokens, valid in this process only."""
    return {hash(tuple(tokens[place : place + size])) for place in range(len(tokens) - size + 1)}


def shortened(tokens: Sequence[str], *, words_only: bool = False) -> set[int]:
    """Returns hashes of the token sequence, and of it without each one of its tokens. Two texts that differ in one
    token share a hash, wherever it stands (deletion neighbourhood, as in SymSpell). With `words_only` no number is left
    out."""
    whole = tuple(tokens)
    found = {hash(whole)}
    for place, token in enumerate(whole):
        if not (words_only and is_number(token)):
            found.add(hash(whole[:place] + whole[place + 1 :]))
    return found
