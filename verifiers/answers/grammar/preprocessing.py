"""Rewrites writing conventions that the grammar would misread or not read, from text to text.

The expected answer may settle an ambiguous convention; each is searched in the whole text or at its end.
"""

from __future__ import annotations

import re
from fractions import Fraction

from verifiers.answers.grammar.errors import GrammarError
from verifiers.answers.grammar.nodes import Symbol
from verifiers.answers.grammar.number_words import number_in_words
from verifiers.answers.grammar.rational import rational
from verifiers.answers.grammar.tokens import MAX_DIGITS
from verifiers.answers.grammar.values import BaseNumber, Listing, Quantity, Ratio, Scalar, TextAnswer, Value

BLANK_GROUPS = re.compile(r"[+-]?[1-9][0-9]{0,2}(?: [0-9]{3})+(?:\.[0-9]+)?")
DECIMAL_COMMA = re.compile(r"[+-]?(?:0|[1-9][0-9]*),(?:[0-9]{1,2}|[0-9]{4,12})|[+-]?0,[0-9]{3}")
TIMES = re.compile(r"(?<=[0-9])\s*[xX]\s*(?=10\s*(?:\^|\*\*))")
SMALL_DIGITS = re.compile(r"[0-9a-z]+_(?:[0-9]{1,2}|\{[0-9]{1,2}\})")
HEXADECIMAL = re.compile(r"[A-F][0-9A-F]+_(?:16|\{16\})")
UPRIGHT_DIGITS = re.compile(r"^\\(?:text|mathrm)\{([0-9A-Z]+)\}(_(?:[0-9]{1,2}|\{[0-9]{1,2}\}))$")
ALL = re.compile(r"^(?:\\text\{\s*all\s*\}|all\b)\s*(?=[A-Za-z]\s*(?:[<>]|\\[gl]eq?\b|\\in\b))")
_MODULUS = r"(?:\\(?:text|mathrm|operatorname)\{\s*mod\s*\}|\\[bp]?mod|\bmod)\s*\{?\s*([0-9]{1,12})\s*\}?"
MODULUS = re.compile(rf"\(\s*{_MODULUS}\s*\)|{_MODULUS}")
ARRAY = re.compile(
    r"""(?:(?:\\left|\\[bB]igg?l?)\s*)?(?P<opening>\[|\(|\||\\\{)\s*
    \\begin\s*\{(?P<kind>array|aligned|matrix)\}\s*(?:\{[lcr|\ ]*\})?(?P<rows>(?:(?!\\begin|\\end).)*)
    \\end\s*\{(?P=kind)\}\s*(?:\\right|\\[bB]igg?r?)?\s*(?:\]|\)|\||\\\}|\.)""",
    re.VERBOSE | re.DOTALL,
)
BRACKETED = {"[": "bmatrix", "(": "pmatrix", "|": "vmatrix", "\\{": "cases"}
_PAIR = r"[(\[][^()\[\],]*,[^()\[\],]*[)\]]"
UNION = re.compile(rf"({_PAIR})\s*(?:U|\\(?:text|mathrm|textbf|mathbf)\{{\s*U\s*\}})\s*(?=(?:\\left\s*)?{_PAIR})")
MEASURE = re.compile(r"(?<![A-Za-z\\])m\s*\\angle")
TO = re.compile(r"(?<!\s)\s+to\s+|(?<!\s)\s*\\text\{\s*to\s*\}\s*")

LOOKED_AT = 120
"""Characters at the end of a text searched for a declaration of its parameter."""
QUANTIFIED = r"where|with|for(?: all| any| every| each| some)?"
MEMBER = re.compile(
    rf"[,;]?\s*(?:\\text\{{\s*(?:{QUANTIFIED})\s*\}}|\b(?:{QUANTIFIED})\b|\()\s*([A-Za-z]\s*\\in\s*\\mathbb\s*\{{?[NZ]\}}?)\s*\)?$"
)
INTEGER = re.compile(
    rf"""[,;]?\s*(?:\\text\{{)?\s*(?:{QUANTIFIED})\s*(?:an\s|any\s)?\s*(?P<kind>positive|nonnegative|non-negative)?\s*
    integers?\s*\}}?\s*(?P<name>[A-Za-z])$""",
    re.VERBOSE,
)
IS_INTEGER = re.compile(
    rf"""[,;]?\s*(?:\\text\{{)?\s*(?:{QUANTIFIED})\s*\}}?\s*(?P<name>[A-Za-z])\s*(?:\\text\{{)?\s*is\s+(?:an|any|a)\s+
    (?P<kind>positive|nonnegative|non-negative)?\s*integer\s*\}}?$""",
    re.VERBOSE,
)
SETS = {None: r"\mathbb{Z}", "positive": r"\mathbb{N}", "nonnegative": r"\mathbb{N}_0", "non-negative": r"\mathbb{N}_0"}
EVERYWHERE = re.compile(
    r"""[,;]?\s*(?:\\text\{)?\s*for\s+(?:all|every|any)\s*(?:real\s*(?:numbers?)?)?\s*\}?\s*([a-z])\s*
    (?:\\in\s*\\mathbb\s*\{?R\}?)?$""",
    re.VERBOSE,
)
DEFINED = re.compile(r"[A-Za-z]\s*\(\s*([a-z])\s*\)\s*=")
LETTERS = re.compile(r"\(?[A-Z]\)?(?:\s*(?:,\s*and\b|[,;&]|\band\b|\\text\{\s*and\s*\})\s*\(?[A-Z]\)?)+")
CHOSEN = re.compile(r"[A-Z]{2,12}")


def preprocessed(text: str, expected: Value | None, *, listed: bool = False) -> str:
    """Rewrites `1 000`, `3 x 10^8`, `FF_{16}`, `0,5`, `3 to 2`, `where k is an integer` for the grammar.

    `listed`: another comma or semicolon followed. Raises GrammarError for a comma that may separate two answers where
    one is expected: `5,0` for 5.
    """
    if BLANK_GROUPS.fullmatch(text):
        return text.replace(" ", "")
    if isinstance(expected, Scalar | Quantity) and DECIMAL_COMMA.fullmatch(text):
        if listed or _may_be_two(text, expected):
            raise GrammarError("a comma that may separate two answers: write a decimal point")
        return text.replace(",", ".")
    if "\\begin" in text:
        text = ARRAY.sub(_bracketed, text)
    if "angle" in text:
        text = MEASURE.sub(r"\\angle", text)
    if "U" in text:
        text = UNION.sub(r"\1 \\cup ", text)
    if "10" in text and ("x" in text or "X" in text):
        text = TIMES.sub(r"\\times ", text)
    if isinstance(expected, BaseNumber) and SMALL_DIGITS.fullmatch(text):
        text = text.upper()
    if isinstance(expected, Ratio) and "to" in text:
        text = TO.sub(":", text)
    if "equiv" in text:
        text = MODULUS.sub(lambda found: f"\\pmod{{{found[1] or found[2]}}}", text)
    text = ALL.sub("", text)
    if "integer" in text or "\\in" in text or "for" in text:
        text = _declared(text)
    text = UPRIGHT_DIGITS.sub(r"\1\2", text)
    return "0" + text if HEXADECIMAL.fullmatch(text) else text


def _bracketed(array: re.Match[str]) -> str:
    """Rewrites a LaTeX array in brackets as the matrix environment with these brackets."""
    name = BRACKETED[array["opening"]]
    return f"\\begin{{{name}}}{array['rows']}\\end{{{name}}}"


def _may_be_two(text: str, expected: Scalar | Quantity) -> bool:
    """True if only zeros follow the decimal comma, or if one side of it is the expected number."""
    before, _, behind = text.partition(",")
    if not behind.strip("0") or len(before) > MAX_DIGITS:
        return True
    try:
        return rational(expected.of) in (Fraction(before), Fraction(behind))
    except GrammarError:
        return False


def _declared(text: str) -> str:
    r"""Rewrites `where k is an integer` as `, k \in \mathbb{Z}`; drops `for all real x` after `f(x) = ...`."""
    head, tail = text[:-LOOKED_AT], text[-LOOKED_AT:]
    found = MEMBER.search(tail)
    if found:
        return f"{head}{tail[: found.start()]} , {found[1]}"
    found = INTEGER.search(tail) or IS_INTEGER.search(tail)
    if found:
        return f"{head}{tail[: found.start()]} , {found['name']} \\in {SETS[found['kind']]}"
    found = EVERYWHERE.search(tail)
    defined = DEFINED.match(text)
    return head + tail[: found.start()] if found and defined and found[1] == defined[1] else text


def digits_first(text: str) -> str:
    """Rewrites `twelve dollars` as `12 dollars`: converts the longest prefix that is a number in words."""
    words = text.split(" ")
    for count in range(min(len(words) - 1, 8), 0, -1):
        value = number_in_words(" ".join(words[:count]))
        if value is not None:
            return " ".join((str(value), *words[count:]))
    return text


def several_choices(text: str, expected: Value | None) -> Value | None:
    """Reads `ACD`, `(A), (C) and (D)` if such a list is expected; `A, C, D` if `ACD` is; else None."""
    match expected:
        case Listing(items):
            wanted = [item.of.name for item in items if isinstance(item, Scalar) and isinstance(item.of, Symbol)]
            plain = len(wanted) == len(items) == len(set(wanted)) and all(
                len(name) == 1 and name.isupper() for name in wanted
            )
            letters = _letters(text) or (list(text) if CHOSEN.fullmatch(text) else [])
            if plain and letters and len(set(letters)) == len(letters):
                return Listing(tuple(Scalar(Symbol(letter)) for letter in letters))
        case TextAnswer(word) if 2 < len(word) < 9 and set(word) <= set("abcdefgh") and sorted(set(word)) == list(word):
            letters = _letters(text)
            if len(letters) == len(word) and sorted(letters) == list(word.upper()):
                return TextAnswer(word)
        case _:
            pass
    return None


def _letters(text: str) -> list[str]:
    return re.findall(r"(?<![A-Za-z\\])[A-Z](?![A-Za-z])", text) if LETTERS.fullmatch(text) else []
