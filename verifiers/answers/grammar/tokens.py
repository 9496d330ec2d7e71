"""Text to tokens: an allow-list of characters, words and LaTeX commands, and the first caps on size.

Look-alikes do not pass: full-width and mathematical letters are folded to ASCII (NFKC), superscripts, subscripts and
fractions are refused because folding would change what they say (`x²` would become `x2`), and so is every character
that is not ASCII after that.
"""

from __future__ import annotations

import re
import unicodedata
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

HARMLESS_FOLDS = ("<font>", "<wide>", "<narrow>", "<noBreak>")
KEYWORDS = frozenset({"and", "or", "not"})

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


PATTERN = re.compile(
    r"""
    (?P<space>(?:[ \t\r\n]|\\[,;:!\ ]|\\q?quad(?![A-Za-z])|~)+)
  | (?P<grouped>[1-9][0-9]{0,2}(?:(?:,|\{,\})[0-9]{3})+(?![0-9])(?:\.[0-9]+)?)
  | (?P<number>(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)(?:E[+-]?[0-9]+|e[0-9]+|e[+-][0-9]+)?)
  | (?P<upright>\\(?:mathrm|operatorname)\s*\{\s*(?P<name>[A-Za-z]+)\s*\})
  | \\left\s*(?P<open>[(|]) | \\right\s*(?P<close>[)|])
  | \\(?P<command>[A-Za-z]+)
  | (?P<word>[A-Za-z]+)
  | (?P<mark>\*\*|//|==|!=|<=|>=|[-+*/^!%<>=(){}\[\]|,_])
    """,
    re.VERBOSE | re.ASCII,
)

COMMANDS: dict[str, tuple[Kind, str]] = {
    "frac": ("mark", "\\frac"), "dfrac": ("mark", "\\frac"), "tfrac": ("mark", "\\frac"),
    "sqrt": ("mark", "\\sqrt"),
    "binom": ("mark", "\\binom"), "dbinom": ("mark", "\\binom"), "tbinom": ("mark", "\\binom"),
    "cdot": ("mark", "*"), "times": ("mark", "*"), "div": ("mark", "/"),
    "circ": ("mark", "\\circ"),
    "lfloor": ("mark", "\\lfloor"), "rfloor": ("mark", "\\rfloor"),
    "lceil": ("mark", "\\lceil"), "rceil": ("mark", "\\rceil"),
    "le": ("mark", "<="), "leq": ("mark", "<="), "ge": ("mark", ">="), "geq": ("mark", ">="),
    "lt": ("mark", "<"), "gt": ("mark", ">"), "ne": ("mark", "!="), "neq": ("mark", "!="),
    "land": ("mark", "and"), "lor": ("mark", "or"), "lnot": ("mark", "not"), "neg": ("mark", "not"),
    **{
        name: ("word", name)
        for name in (
            "pi", "sin", "cos", "tan", "cot", "sec", "csc", "arcsin", "arccos", "arctan",
            "sinh", "cosh", "tanh", "exp", "ln", "log", "gcd", "min", "max",
        )
    },
}  # fmt: skip


def folded(text: str) -> str:
    """The text in ASCII. Raises GrammarError, naming the character that is not in the language."""
    for character in text:
        if not character.isascii():
            tag = unicodedata.decomposition(character).partition(" ")[0]
            if tag not in HARMLESS_FOLDS:
                name = unicodedata.name(character, f"U+{ord(character):04X}")
                raise GrammarError(f"contains {name}, which is not plain ASCII mathematics")
    plain = unicodedata.normalize("NFKC", text)
    if not plain.isascii():
        raise GrammarError("contains characters that are not plain ASCII mathematics")
    return plain


def tokenize(text: str) -> list[Token]:
    """All tokens of the text with an end mark behind them. Raises GrammarError for anything outside the language."""
    if len(text) > MAX_CHARACTERS:
        raise TooLargeError(f"longer than {MAX_CHARACTERS} characters")
    plain = folded(text).strip()
    if len(plain) > 2 and plain[0] == plain[-1] == "$" and "$" not in plain[1:-1]:
        plain = plain[1:-1]
    tokens: list[Token] = []
    position = 0
    glued = False
    depth = 0
    while position < len(plain):
        match = PATTERN.match(plain, position)
        if match is None:
            raise GrammarError(f"cannot read {plain[position : position + 12]!r}", position=len(tokens))
        if match["grouped"] and depth:
            # Inside brackets a comma separates arguments: gcd(1,234) has two.
            match = re.compile(r"(?P<number>[0-9]+)").match(plain, position)
            assert match is not None
            tokens.append(_number(match["number"], glued))
        elif match["grouped"]:
            tokens.append(_number(re.sub(r"[,{}]", "", match["grouped"]), glued))
        elif not match["space"]:
            tokens.append(_token(match, glued))
            depth += {"(": 1, ")": -1}.get(tokens[-1].text, 0)
        glued = not match.groupdict().get("space")
        position = match.end()
        if len(tokens) > MAX_TOKENS:
            raise TooLargeError(f"more than {MAX_TOKENS} signs")
    return [*tokens, Token("end", "the end")]


def _token(match: re.Match[str], glued: bool) -> Token:
    if match["number"]:
        return _number(match["number"], glued)
    if match["open"] or match["close"]:
        bracket = match["open"] or match["close"]
        side = "open" if match["open"] else "close"
        return Token("mark", f"|{side}" if bracket == "|" else bracket, glued=glued)
    if match["command"]:
        known = COMMANDS.get(match["command"])
        if known is None:
            raise GrammarError(f"\\{match['command'][:20]} is not in the language")
        return Token(known[0], known[1], glued=glued)
    word = match["name"] or match["word"]
    if word:
        return Token("mark" if word in KEYWORDS else "word", word, glued=glued)
    return Token("mark", "^" if match["mark"] == "**" else match["mark"], glued=glued)


def _number(text: str, glued: bool) -> Token:
    if re.search(r"e[+-]", text):
        raise GrammarError("'e' with a sign may mean a power of ten or Euler's number: write E, or a product")
    mantissa, _, exponent = text.upper().partition("E")
    if len(mantissa) > MAX_DIGITS:
        raise TooLargeError(f"a number of more than {MAX_DIGITS} digits")
    if len(exponent) > 6 or abs(int(exponent or "0")) > MAX_SCIENTIFIC:
        raise TooLargeError(f"a power of ten beyond {MAX_SCIENTIFIC}")
    value = Fraction(mantissa) * Fraction(10) ** int(exponent or "0")
    return Token("number", text, value, glued, integer=text.isdigit())
