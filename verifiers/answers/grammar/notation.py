r"""Lexers of the two languages: the plain one of specs, and that of answers, LaTeX with plain mathematics.

In answers, spacing, `\left`, `\right`, sizes and dollar signs around formulas leave no token; recurring decimals and
digits with a base are numbers.

Recognises vectors and matrices by their notation: an arrow, bold letters.

The algebra of answers is that of numbers, which holds for one vector, for multiples and sums, and for a dot product of
two; every other product of vectors is refused.
"""

from __future__ import annotations

import math
import re
from fractions import Fraction

from verifiers.answers.grammar import vocabulary as known
from verifiers.answers.grammar.errors import GrammarError, TooLargeError
from verifiers.answers.grammar.nodes import Expression, FunctionCall, Negation, Number, Power, Sum, Symbol, children
from verifiers.answers.grammar.numerals import MAX_DIGITS
from verifiers.answers.grammar.tokens import Lexicon, Token, grouped, number

MAX_BASED = 200
"""Maximum digits of a number with a base."""
UNIT_VECTORS = ("i", "j", "k")
"""Unit vectors; bold, with an arrow or with a hat they are the same."""


def _plain_number(match: re.Match[str]) -> Token:
    if re.search(r"e[+-]", match.group()):
        raise GrammarError("'e' with a sign may mean a power of ten or Euler's number: write E, or a product")
    return number(match.group())


def _plain_word(match: re.Match[str]) -> Token:
    word = match["name"] if match.lastgroup == "upright" else match.group()
    return Token("mark" if word in ("and", "or", "not") else "word", word)


def _plain_command(match: re.Match[str]) -> Token:
    name = match["command"][1:]
    if name in known.PLAIN_WORDS:
        return Token("word", name)
    if name in known.PLAIN_MARKS:
        return Token("mark", known.PLAIN_MARKS[name])
    raise GrammarError(f"\\{name[:20]} is not in the language")


def _sized_bracket(match: re.Match[str]) -> Token:
    r"""Converts a LaTeX bracket of automatic size, `\left(` or `\right|`, to the token of the plain bracket."""
    text = match.group()
    if text[-1] != "|":
        return Token("mark", text[-1])
    return Token("mark", "|open" if "left" in text else "|close")


def _degree(_match: re.Match[str]) -> Token:
    return Token("mark", "\\degree")


PLAIN = Lexicon(
    {
        "space": (r"(?:[ \t\r\n]|\\[,;:!\ ]|\\q?quad(?![A-Za-z])|~)+", _degree),
        "grouped": (r"[1-9][0-9]{0,2}(?:(?:,|\{,\})[0-9]{3})+(?![0-9])(?:\.[0-9]+)?", grouped),
        "number": (r"(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)(?:E[+-]?[0-9]+|e[0-9]+|e[+-][0-9]+)?", _plain_number),
        "upright": (r"\\(?:mathrm|operatorname)\s*\{\s*(?P<name>[A-Za-z]+)\s*\}", _plain_word),
        "sized": (r"\\left\s*[(|]|\\right\s*[)|]", _sized_bracket),
        "degree": (r"\^\s*(?:\{\s*\\circ\s*\}|\\circ(?![A-Za-z]))", _degree),
        "command": (r"\\[A-Za-z]+", _plain_command),
        "word": (r"[A-Za-z]+", _plain_word),
        "mark": (
            r"\*\*|//|==|!=|<=|>=|[-+*/^!%<>=(){}\[\]|,_]",
            lambda match: Token("mark", match.group().replace("**", "^")),
        ),
    },
    shortened=lambda kind, _, separate: kind == "grouped" and separate,
)


def _mark(match: re.Match[str]) -> Token:
    text = match.group()
    return Token("unit" if text in "$%" else "mark", known.SAME_MARK.get(text, text))


def _word(match: re.Match[str]) -> Token:
    text = match.group()
    if text in known.DEGREE_WORDS:
        return Token("mark", "\\degree")
    if text == "det":
        return Token("mark", known.MARKS[text])
    return Token("mark" if text in ("and", "or") else "word", text)


def _command(match: re.Match[str]) -> Token | None:
    name = match["command"][1:]
    if name in known.SKIPPED:
        return None
    if name in known.MARKS:
        return Token("mark", known.MARKS[name])
    if name in known.FUNCTION_COMMANDS or name == "pi":
        return Token("word", name)
    if name in known.GREEK_NAMES or name in known.VARIANTS:
        return Token("symbol", known.VARIANTS.get(name, name))
    if name in known.UNIT_COMMANDS:
        return Token("unit", known.UNIT_COMMANDS[name])
    if name in known.ARROWS:
        raise GrammarError(f"\\{name}: logic, maps and reactions between values are not read")
    raise GrammarError(f"\\{name[:20]} is not in the language")


def _styled(match: re.Match[str]) -> Token:
    style, content = match["style"], (match["content"] or match["single"] or "").strip()
    hatted = re.fullmatch(r"\\hat\s*\{?\s*\\?([ijk])(?:math)?\s*\}?", content)
    if style in known.BOLD_STYLES and hatted:
        return Token("symbol", f"unit {hatted[1]}")
    if style in known.BOLD_STYLES and re.fullmatch("[A-Za-z]", content):
        return Token("symbol", f"{'unit' if content in UNIT_VECTORS else 'bold'} {content}")
    if style not in known.TEXT_STYLES and (
        content in known.FUNCTION_COMMANDS
        or content == "pi"
        or (style == "mathit" and re.fullmatch("[A-Za-z]+", content))
    ):
        return Token("word", content)
    if content in ("and", "or"):
        return Token("mark", content)
    if content in known.DEGREE_WORDS:
        return Token("mark", "\\degree")
    if content in known.OF_MATRICES:
        return Token("mark", known.MARKS[content])
    return Token("text", content)


def _accented(match: re.Match[str]) -> Token:
    accent, under = match["accent"], match["bold"] or match["under"] or match["letter"]
    if under in ("\\imath", "\\jmath"):
        under = under[1]
    name = under.removeprefix("\\")
    if under.startswith("\\") and name not in known.GREEK_NAMES:
        raise GrammarError(f"{under[:20]} is not a symbol")
    if len(name) > 4 and name not in known.GREEK_NAMES:
        raise GrammarError(f"\\{accent} over a word")
    accent = {"overrightarrow": "vec", "widehat": "hat"}.get(accent, accent)
    accent = "bar" if accent == "overline" and len(name) == 1 else accent
    if name in UNIT_VECTORS and accent in ("vec", "hat"):
        accent = "unit"
    return Token("symbol", f"{accent} {name}")


def _environment(match: re.Match[str]) -> Token:
    if (match["columns"] is not None) != (match["environment"] == "array" and match["begin"] == "begin"):
        raise GrammarError("an array of columns that cannot be read")
    return Token("mark", f"\\{match['begin']}{{{match['environment']}}}")


def _escaped(match: re.Match[str]) -> Token:
    text = match.group()
    return Token("unit", text[1]) if text[1] in "$%" else Token("mark", text)


def _recurring(match: re.Match[str]) -> Token:
    r"""Converts a decimal whose marked digits repeat without end to its token: `0.1\overline{6}`, `0.1(6)` or
    `0.1\dot{6}`."""
    text = match.group()
    if len(text) > MAX_DIGITS:
        raise TooLargeError(f"a number of more than {MAX_DIGITS} digits")
    whole, _, rest = text.partition(".")
    before, _, marked = rest.partition("(" if "(" in rest else "\\")
    cycle = re.sub(r"[^0-9]", "", marked)
    dots = marked.count("dot")
    last = r"dot\s*(\{[0-9]\}|[0-9])"
    if (dots == 1 and marked.startswith("dot") and not re.fullmatch(last, marked)) or (
        dots == 2 and not re.search(f"{last}$", marked)
    ):
        raise GrammarError("a recurring decimal whose end is not marked")
    start = Fraction(int((whole + before) or "0"), 10 ** len(before))
    return Token("number", text, start + Fraction(int(cycle), (10 ** len(cycle) - 1) * 10 ** len(before)))


def _base(text: str) -> tuple[str, int]:
    digits, _, written = text.partition("_")
    written = written.removeprefix("{").removesuffix("}")
    # `two`, `base 2` or `base two`, upright as a whole or in part.
    named = written.removeprefix("\\text{").replace("}", " ").strip().removeprefix("base").strip()
    written = named if named.isdigit() and len(named) < 3 else written
    return digits, int(written) if written.isdigit() else known.BASES.get(named, 0)


def _based(match: re.Match[str]) -> Token:
    digits, base = _base(match.group())
    return Token("based", digits, Fraction(base))


def _shortened(kind: str, text: str, _separate: bool) -> bool:
    if kind == "based":
        digits, base = _base(text)
        return not (2 <= base <= 36 and len(digits) <= MAX_BASED and all(int(digit, 36) < base for digit in digits))
    return False


ANSWERS = Lexicon(
    {
        "space": (
            r"(?:[ \t\r\n~]|\\[,;:!\ ]|\\[hv]space\*?\{[^{}]*\}|\\color\s*\{[A-Za-z!0-9]{1,30}\}(?!\s*\{))+",
            _degree,
        ),
        "colour": (r"\\(?:text)?color\s*\{[A-Za-z!0-9]{1,30}\}", lambda _: Token("mark", "\\group")),
        "based": (
            r"[0-9][0-9A-Z]*_(?:\{(?:[0-9]{1,2}|\\text\{[a-z0-9 ]+\}\s*[0-9]{0,2})\}|[0-9]{1,2}(?![0-9]))",
            _based,
        ),
        "dots": (r"\.\.\.", lambda _: Token("mark", "\\dots")),
        "recurring": (
            r"""[0-9]*\.[0-9]*(?:\\(?:overline|bar)\s*(?:\{[0-9]+\}|[0-9])|\([0-9]+\)
            |(?:\\dot\s*(?:\{[0-9]\}|[0-9])[0-9]*){1,2})""",
            _recurring,
        ),
        "number": (r"(?:[0-9]+\.[0-9]+|[0-9]+|\.[0-9]+)(?:[eE][+-]?[0-9]+)?", lambda match: number(match.group())),
        "comma": (r"\{,\}", lambda _: Token("mark", "{,}")),
        "celsius": (
            r"\^\s*(?:\{\s*\\circ\s*\}|\\circ)\s*(?P<scale>[CF](?![A-Za-z])|\\(?:text|mathrm)\{\s*[CF]\s*\})",
            lambda match: Token("unit", "degC" if "C" in match["scale"] else "degF"),
        ),
        "degree": (r"\^\s*(?:\{\s*\\circ\s*\}|\\circ(?![A-Za-z]))", _degree),
        "styled": (
            rf"""\\(?P<style>{"|".join(known.STYLES)}\*?)\s*(?:\{{(?P<content>(?:[^{{}}]|\{{[^{{}}]*\}})*)\}}
            |(?P<single>\ [A-Za-z]))""",
            _styled,
        ),
        "probability": (
            r"\\(?:mathbb\s*(?:\{\s*[PE]\s*\}|[PE])|Pr(?![A-Za-z]))",
            lambda match: Token("word", "E" if "E" in match.group() else "P"),
        ),
        "numbers": (
            r"\\mathbb\s*(?:\{[NZQRC]\}|[NZQRC])",
            lambda match: Token("mark", "\\mathbb" + match.group().strip("{}")[-1]),
        ),
        "accented": (
            r"""\\(?P<accent>vec|hat|bar|overline|tilde|overrightarrow|widehat)
            \s*(?:\{\s*(?:\\mathbf\s*\{(?P<bold>[A-Za-z])\}|(?P<under>\\?[A-Za-z]+))\s*\}|(?P<letter>[A-Za-z]))""",
            _accented,
        ),
        "environments": (
            rf"""\\(?P<begin>begin|end)\s*\{{(?P<environment>{"|".join(known.ENVIRONMENTS)})\}}
            (?P<columns>\{{[lcr|\ ]*\}})?""",
            _environment,
        ),
        "sized": (r"\\(?:left|right)\s*\|", _sized_bracket),
        "command": (r"\\[A-Za-z]+", _command),
        "row": (r"\\\\(?:\[-?[0-9.]+(?:pt|ex|em|mm|cm)\])?", lambda _: Token("mark", "\\\\")),
        "escaped": (r"\\[{}$%]", _escaped),
        "word": (r"[A-Za-z]+", _word),
        "mark": (r"\*\*|==|!=|<=|>=|=<|[-+*/^!%<>=(){}\[\]|,_;:&'$]", _mark),
    },
    shortened=_shortened,
)


VECTORS = re.compile("(vec|bold|unit|hat) ")
"""Name prefix of a decorated symbol that may be a vector or a matrix."""


def is_vector(node: Expression) -> bool:
    """True if an expression contains the name of a vector or matrix, function arguments aside."""
    match node:
        case Symbol(name):
            return bool(VECTORS.match(name))
        case FunctionCall():
            return False
        case _:
            return any(map(is_vector, children(node)))


def vectors(node: Expression) -> int:
    """Counts the vectors or matrices multiplied with each other in an expression. Unit vectors, letters with a hat, do
    not count."""
    match node:
        case Symbol(name):
            return int(is_vector(node) and not name.startswith("hat "))
        case FunctionCall():
            return 0
        case Sum(terms):
            return max(map(vectors, terms))
        case Power(base, exponent):
            of = exponent.of if isinstance(exponent, Negation) else exponent
            return vectors(base) * (math.ceil(of.value) if isinstance(of, Number) else 2)
        case _:
            return sum(map(vectors, children(node)))
