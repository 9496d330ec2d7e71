"""Splits text into tokens by an allow-list of patterns, with the first size limits.

Text is tokenised whole or refused. Numbers are exact: decimals and powers of ten; `numerals` writes out what has
separators.

Characters beyond ASCII allowed in answers: mathematical signs, each with its LaTeX form.

A letter that only looks like another (Cyrillic х, Greek capital Α) is refused, as are invisible and direction-changing
characters: the text read is the text a person sees. Full-width and mathematical letters are folded (NFKC). Other Latin
letters are kept, so that names can be words; mathematics never contains them.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from verifiers.answers.grammar.errors import GrammarError, TooLargeError
from verifiers.answers.grammar.numerals import MAX_DIGITS

MAX_CHARACTERS = 5_000
MAX_TOKENS = 1_500
MAX_SCIENTIFIC = 2_000
"""Maximum exponent of ten in `1.5E3`."""
OPENING = frozenset({"(", "[", "\\{", "\\langle"})
CLOSING = frozenset({")", "]", "\\}", "\\rangle"})
SHORT_NUMBER = re.compile(r"(?P<number>[0-9]+(?:\.[0-9]+)?)")

Kind = Literal["number", "word", "mark", "end", "symbol", "text", "unit", "based"]
"""Token kinds. The last four are only in answers: a decorated or Greek letter, upright words, a unit sign, `101_2`."""


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

    def tokens(self, text: str, *, euler: bool = False) -> list[Token]:
        """Tokenises an ASCII text and appends end marks. Raises GrammarError if no pattern matches.

        `euler`: `2e+1` is a sum with Euler's number.
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
                self.shortened(kind, match.group(), depth != 0)
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
    """Converts digits with an optional decimal point and power of ten to a number token. Raises TooLargeError if it is
    too long."""
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


GREEK = {
    "α": "alpha", "β": "beta", "γ": "gamma", "δ": "delta", "ε": "epsilon", "ζ": "zeta", "η": "eta", "θ": "theta",
    "ι": "iota", "κ": "kappa", "λ": "lambda", "μ": "mu", "ν": "nu", "ξ": "xi", "π": "pi", "ρ": "rho", "ς": "varsigma",
    "σ": "sigma", "τ": "tau", "υ": "upsilon", "φ": "phi", "χ": "chi", "ψ": "psi", "ω": "omega", "Γ": "Gamma",
    "Δ": "Delta", "Θ": "Theta", "Λ": "Lambda", "Ξ": "Xi", "Π": "Pi", "Σ": "Sigma", "Φ": "Phi", "Ψ": "Psi",
    "Ω": "Omega", "ϕ": "phi", "ϑ": "theta", "ϵ": "epsilon", "µ": "mu",
}  # fmt: skip
"""Greek letters that do not look like Latin ones; excludes omicron and capitals such as Α."""

SIGNS = {
    "\u2212": "-", "×": r"\times ", "·": r"\cdot ", "⋅": r"\cdot ", "∙": r"\cdot ", "∗": "*", "÷": r"\div ", "⁄": "/",
    "∕": "/", "√": r"\surd ", "∛": r"\surd[3]", "≤": r"\le ", "≥": r"\ge ", "⩽": r"\le ", "⩾": r"\ge ",
    "≠": r"\ne ", "∞": r"\infty ", "∪": r"\cup ", "∩": r"\cap ", "∖": r"\setminus ", "∈": r"\in ", "∉": r"\notin ",
    "∅": r"\emptyset ", "±": r"\pm ", "∓": r"\mp ", "°": r"^\circ ", "′": "'", "∣": "|", "⟨": r"\langle ",
    "⟩": r"\rangle ", "⌊": r"\lfloor ", "⌋": r"\rfloor ", "⌈": r"\lceil ", "⌉": r"\rceil ", "∧": r"\land ",
    "∨": r"\lor ", "ℝ": r"\mathbb{R}", "ℤ": r"\mathbb{Z}", "ℚ": r"\mathbb{Q}", "ℕ": r"\mathbb{N}", "ℂ": r"\mathbb{C}",
    "∫": r"\int ", "≈": r"\approx ", "≡": r"\equiv ", "…": r"\dots ", "⋯": r"\dots ",
    "∑": r"\sum ", "∏": r"\prod ", "€": r"\euro ", "£": r"\pounds ", "¢": r"\cents ", "¥": r"\yen ",
    "₹": r"\rupee ", "\u201c": '"', "\u201d": '"', "″": "''",
    "Å": r"\AA ", "∠": r"\angle ",
    "\u212b": r"\AA ", "\u2126": r"\Omega ", "\u212a": "K",
    "º": r"^\circ ", "˚": r"^\circ ", "℃": r"^\circ C ", "℉": r"^\circ F ",
    "½": r"\frac{1}{2}", "⅓": r"\frac{1}{3}", "⅔": r"\frac{2}{3}", "¼": r"\frac{1}{4}", "¾": r"\frac{3}{4}",
    "⅕": r"\frac{1}{5}", "⅖": r"\frac{2}{5}", "⅗": r"\frac{3}{5}", "⅘": r"\frac{4}{5}", "⅙": r"\frac{1}{6}",
    "⅚": r"\frac{5}{6}", "⅛": r"\frac{1}{8}", "⅜": r"\frac{3}{8}", "⅝": r"\frac{5}{8}", "⅞": r"\frac{7}{8}",
    "\u2018": "'", "\u2019": "'", "\u00a0": " ", "\u2009": " ", "\u202f": " ",
    **dict.fromkeys("\u2002\u2003\u2004\u2005\u2006\u2008\u200a\u205f", " "),
    **{letter: rf"\{name} " for letter, name in GREEK.items()},
}  # fmt: skip

RAISED = dict(zip("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁽⁾ⁿⁱˣ", "0123456789+-()nix", strict=True))
LOWERED = dict(zip("₀₁₂₃₄₅₆₇₈₉ₙₖₓ", "0123456789nkx", strict=True))
RAISED_RUN = re.compile("[" + "".join(map(re.escape, RAISED)) + "]+")
LOWERED_RUN = re.compile("[" + "".join(map(re.escape, LOWERED)) + "]+")
LEADING_DASH = re.compile(r"(^|[(\[{,=<>])(\s*)\u2013")
FOLDS = ("<font>", "<wide>", "<narrow>", "<noBreak>", "<square>")


def plain(text: str) -> str:
    """Rewrites every mathematical sign of a text in ASCII or LaTeX. Raises GrammarError, naming a character without
    meaning here."""
    if text.isascii():
        return text
    text = LEADING_DASH.sub(r"\1\2-", text)
    text = RAISED_RUN.sub(lambda run: "^{" + "".join(RAISED[sign] for sign in run.group()) + "}", text)
    text = LOWERED_RUN.sub(lambda run: "_{" + "".join(LOWERED[sign] for sign in run.group()) + "}", text)
    return "".join(character if character.isascii() else _meant(character) for character in text)


def folded(text: str) -> str:
    """Converts full-width and mathematical letters such as `𝑥` to ASCII. Raises GrammarError for any other non-ASCII
    character. Superscripts and fractions are refused, because folding would change their meaning: `x²` would become
    `x2`."""
    for character in text:
        if not character.isascii() and unicodedata.decomposition(character).partition(" ")[0] not in FOLDS:
            name = unicodedata.name(character, f"U+{ord(character):04X}")
            raise GrammarError(f"contains {name}, which is not plain ASCII mathematics")
    found = unicodedata.normalize("NFKC", text)
    if not found.isascii():
        raise GrammarError("contains characters that are not plain ASCII mathematics")
    return found


def _meant(character: str) -> str:
    sign = SIGNS.get(character)
    if sign is not None:
        return sign
    if unicodedata.decomposition(character).partition(" ")[0] in FOLDS:
        plainer = unicodedata.normalize("NFKC", character)
        if plainer.isascii() or plainer in SIGNS:
            return SIGNS.get(plainer, plainer)
    name = unicodedata.name(character, f"U+{ord(character):04X}")
    if re.match(r"LATIN (SMALL|CAPITAL) LETTER [A-Z]( WITH |$)", name) or character in "ßæœøÆŒØ":
        return unicodedata.normalize("NFC", character)
    raise GrammarError(f"contains {name}, which is not a supported mathematical sign")
