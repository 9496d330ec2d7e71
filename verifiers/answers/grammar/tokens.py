"""Splits text into tokens by an allow-list of patterns, with the first caps on size. The whole text or a refusal.

Numbers are exact: decimals, groups of thousands, powers of ten. Where a comma stands between groups of three digits it
separates thousands outside brackets and items within them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from verifiers.answers.grammar.errors import GrammarError, TooLargeError

MAX_CHARACTERS = 5_000
MAX_TOKENS = 1_500
MAX_DIGITS = 2_000
"""Of one written number."""
MAX_SCIENTIFIC = 2_000
"""Largest exponent of ten in `1.5E3`."""
OPENING = frozenset({"(", "[", "\\{", "\\langle"})
CLOSING = frozenset({")", "]", "\\}", "\\rangle"})
SHORT_NUMBER = re.compile(r"(?P<number>[0-9]+(?:\.[0-9]+)?)")

Kind = Literal["number", "word", "mark", "end", "symbol", "text", "unit", "based"]
"""The last four only occur in answers: a decorated or Greek letter, upright words, a sign of a unit, `101_2`."""


@dataclass(slots=True)
class Token:
    kind: Kind
    text: str
    value: Fraction = Fraction(0)
    glued: bool = True
    """No white space before it."""
    integer: bool = False
    """A number written in digits only."""


ENDS = (Token("end", "the end"),) * 3
"""Several, so that looking ahead needs no care."""

Pattern = tuple[str, Callable[[re.Match[str]], Token | None]]
"""A regular expression, and what makes a token of what it matches; None for what only spaces or sizes."""


class Lexicon:
    """Splits the text of a language by patterns with names, tried in this order; `space` leaves no token.

    `shortened` is given the name of a pattern, the matched text and whether commas separate here; it says whether only
    the first digits of it are the number, because the rest says something else.
    """

    def __init__(self, patterns: Mapping[str, Pattern], shortened: Callable[[str, str, bool], bool]) -> None:
        alternatives = "|".join(f"(?P<{name}>{pattern})" for name, (pattern, _) in patterns.items())
        self.match = re.compile(alternatives, re.VERBOSE | re.ASCII).match
        self.makers = {name: maker for name, (_, maker) in patterns.items()}
        self.shortened = shortened

    def tokens(self, text: str, *, grouping: bool = True, euler: bool = False) -> list[Token]:
        """Returns all tokens of an ASCII text, with end marks behind them. Raises GrammarError for what is in no
        pattern.

        `grouping`: whether `1,234` outside brackets is one number. `euler`: whether `2e+1` is a sum with Euler's
        number.
        """
        if len(text) > MAX_CHARACTERS:
            raise TooLargeError(f"longer than {MAX_CHARACTERS} characters")
        tokens: list[Token] = []
        position, depth, end = 0, 0, len(text)
        glued = False
        while position < end:
            match = self.match(text, position)
            if match is None:
                raise GrammarError(f"cannot read {text[position : position + 12]!r}", position=len(tokens))
            kind = match.lastgroup or ""
            if kind == "space":
                glued = False
                position = match.end()
                continue
            if kind in FIGURES and (
                self.shortened(kind, match.group(), depth != 0 or not grouping)
                or (euler and kind == "number" and re.search("e[+-]", match.group()))
            ):
                match = SHORT_NUMBER.match(text, position) or match
                kind = "number"
            token = self.makers[kind](match)
            position = match.end()
            if token is None:
                continue
            token.glued = glued
            if token.kind == "mark":
                depth += (token.text in OPENING) - (token.text in CLOSING)
            if glued and token.integer and token.text[0] == "0" and len(token.text) > 1 and tokens[-1].text == ",":
                raise GrammarError("digits in groups of the wrong size", position=len(tokens))
            tokens.append(token)
            glued = True
            if len(tokens) > MAX_TOKENS:
                raise TooLargeError(f"more than {MAX_TOKENS} signs")
        return [*tokens, *ENDS]


FIGURES = frozenset({"number", "grouped", "based"})


def number(text: str) -> Token:
    """Returns a token of digits, a decimal point and an exponent of ten at most. Raises TooLargeError."""
    if len(text) > MAX_DIGITS:
        raise TooLargeError(f"a number of more than {MAX_DIGITS} digits")
    if text.isdigit():
        return Token("number", text, Fraction(int(text)), integer=True)
    mantissa, _, exponent = text.upper().partition("E")
    if len(exponent) > 6 or abs(int(exponent or "0")) > MAX_SCIENTIFIC:
        raise TooLargeError(f"a power of ten beyond {MAX_SCIENTIFIC}")
    whole, _, part = mantissa.partition(".")
    value = Fraction(int(whole + part), 10 ** len(part))
    return Token("number", text, value * Fraction(10) ** int(exponent) if exponent else value)


def grouped(match: re.Match[str]) -> Token:
    return number(re.sub(r"[^0-9.]", "", match.group()))
