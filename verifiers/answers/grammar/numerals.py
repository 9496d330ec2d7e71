"""Numbers as answers write them: digits, decimals, powers of ten, recurring decimals, digits with a base. All exact."""

from __future__ import annotations

import re
from fractions import Fraction

from verifiers.answers.grammar.errors import GrammarError, TooLargeError
from verifiers.answers.grammar.tokens import MAX_DIGITS, MAX_SCIENTIFIC, Token
from verifiers.answers.grammar.vocabulary import BASES

MAX_BASED = 200
"""Digits of a number with its base."""


def number(text: str, glued: bool) -> Token:
    """A token of digits, a decimal point and an exponent of ten at most. Raises TooLargeError."""
    if len(text) > MAX_DIGITS:
        raise TooLargeError(f"a number of more than {MAX_DIGITS} digits")
    if text.isdigit():
        return Token("number", text, Fraction(int(text)), glued, True)
    mantissa, _, exponent = text.upper().partition("E")
    if len(exponent) > 6 or abs(int(exponent or "0")) > MAX_SCIENTIFIC:
        raise TooLargeError(f"a power of ten beyond {MAX_SCIENTIFIC}")
    whole, _, part = mantissa.partition(".")
    value = Fraction(int(whole + part), 10 ** len(part))
    return Token("number", text, value * Fraction(10) ** int(exponent or "0") if exponent else value, glued)


def recurring(text: str) -> Fraction:
    """The value of `0.1\\overline{6}`, `0.1(6)` or `0.1\\dot{6}`: the digits marked repeat for ever."""
    if len(text) > MAX_DIGITS:
        raise TooLargeError(f"a number of more than {MAX_DIGITS} digits")
    whole, _, rest = text.partition(".")
    before, _, marked = rest.partition("(" if "(" in rest else "\\")
    cycle = re.sub(r"[^0-9]", "", marked)
    if marked.startswith("dot") and marked.count("dot") == 1 and not re.fullmatch(r"dot\s*(\{[0-9]\}|[0-9])", marked):
        raise GrammarError("a recurring decimal whose end is not marked")
    if marked.count("dot") == 2 and not re.search(r"dot\s*(\{[0-9]\}|[0-9])$", marked):
        raise GrammarError("a recurring decimal whose end is not marked")
    start = Fraction(int((whole + before) or "0"), 10 ** len(before))
    return start + Fraction(int(cycle), (10 ** len(cycle) - 1) * 10 ** len(before))


def _base(text: str) -> tuple[str, int]:
    digits, _, written = text.partition("_")
    written = written.removeprefix("{").removesuffix("}")
    # `two`, `base 2` or `base two`, upright as a whole or in part.
    named = written.removeprefix("\\text{").replace("}", " ").strip().removeprefix("base").strip()
    written = named if named.isdigit() and len(named) < 3 else written
    return digits, int(written) if written.isdigit() else BASES.get(named, 0)


def is_based(text: str) -> bool:
    digits, base = _base(text)
    return 2 <= base <= 36 and len(digits) <= MAX_BASED and all(int(digit, 36) < base for digit in digits)


def based(text: str, glued: bool) -> Token:
    digits, base = _base(text)
    return Token("based", digits, Fraction(base), glued)
