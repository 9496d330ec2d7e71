"""Splits text into tokens by an allow-list of patterns, with the first size limits.

Text is tokenised whole or refused. Numbers are exact: decimals, groups of thousands, powers of ten. A comma between
groups of three digits separates thousands outside brackets and items within them.
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
"""Maximum digits of one written number."""
MAX_SCIENTIFIC = 2_000
"""Maximum exponent of ten in `1.5E3`."""
OPENING = frozenset({"(", "[", "\\{", "\\langle"})
CLOSING = frozenset({")", "]", "\\}", "\\rangle"})
SHORT_NUMBER = re.compile(r"(?P<number>[0-9]+(?:\.[0-9]+)?)")

Kind = Literal["number", "word", "mark", "end", "symbol", "text", "unit", "based"]
"""Token kinds. The last four occur only in answers: a decorated or Greek letter, upright words, a unit sign, `101_2`.
"""


@dataclass(slots=True)
class Token:
    kind: Kind
    text: str
    value: Fraction = Fraction(0)
    glued: bool = True
    """True without white space before it."""
    integer: bool = False
    """True for a number written in digits only."""


ENDS = (Token("end", "the end"),) * 3
"""End marks; several, so that looking ahead is always safe."""

Pattern = tuple[str, Callable[[re.Match[str]], Token | None]]
"""A regular expression, and the function that makes a token of its match; None for spacing and sizes."""


class Lexicon:
    """Tokeniser of a language, from named patterns tried in order; `space` leaves no token.

    `shortened` gets a pattern's name, the matched text and whether commas separate here; it returns True if only the
    first digits are the number, because the rest means something else.
    """

    def __init__(self, patterns: Mapping[str, Pattern], shortened: Callable[[str, str, bool], bool]) -> None:
        alternatives = "|".join(f"(?P<{name}>{pattern})" for name, (pattern, _) in patterns.items())
        self.match = re.compile(alternatives, re.VERBOSE | re.ASCII).match
        self.makers = {name: maker for name, (_, maker) in patterns.items()}
        self.shortened = shortened

    def tokens(self, text: str, *, grouping: bool = True, euler: bool = False) -> list[Token]:
        """Tokenises an ASCII text and appends end marks. Raises GrammarError if no pattern matches.

        `grouping`: `1,234` outside brackets is one number. `euler`: `2e+1` is a sum with Euler's number.
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
    """Converts digits with an optional decimal point and exponent of ten to a number token. Raises TooLargeError."""
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
