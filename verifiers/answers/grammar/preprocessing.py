r"""Rewrites an answer's text before it is parsed: conventions and decoration.

The expected answer may settle an ambiguous convention; each is searched in the whole text or at its end. A wrapper
(dollar signs, `\boxed{}`, `\text{}`) is removed only if it encloses the whole text; brackets are matched in one pass.
"""

from __future__ import annotations

import re
from fractions import Fraction

from verifiers.answers.grammar.errors import GrammarError, TooLargeError
from verifiers.answers.grammar.nodes import Constant, walk
from verifiers.answers.grammar.number_words import number_in_words
from verifiers.answers.grammar.values import BaseNumber, Matrix, Quantity, Ratio, Scalar, Value

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

_DEGREE = r"(?:\^\s*(?:\{\s*\\circ\s*\}|\\circ)|\\degree|degrees?\b|deg\b)"
_PRIME = r"(?:'|\^\s*(?:\{\s*\\prime\s*\}|\\prime))"
_GAP = r"(?:\s|~|\\[,;:\ ]){0,4}"
PARTS_OF_DEGREE = re.compile(
    rf"""(?<![0-9.])([0-9]{{1,4}}){_GAP}{_DEGREE}{_GAP},?{_GAP}([0-9]{{1,2}})\s*(?:{_PRIME}(?!')|min(?:utes?)?\b|arcmin\b)
    (?:{_GAP},?{_GAP}([0-9]{{1,2}}(?:\.[0-9]{{1,9}})?)\s*(?:\"|{_PRIME}\s*{_PRIME}|\^\{{\\prime\s*\\prime\}}|sec(?:onds?)?\b|arcsec\b))?""",
    re.VERBOSE,
)
"""An angle in degrees, minutes and seconds: `45^\\circ 30' 15''`."""
DOLLAR_SIGN = re.compile(r"^(-?)\s*(?:US|U\.S\.|\\(?:text|mathrm)\{\s*US\s*\})\s*\\?\$")
CURRENCY_CODE = re.compile(
    r"^(-?)\s*(?:\\(?:text|mathrm)\{\s*)?(USD|EUR|GBP|JPY|INR|Rs\b\.?)(?:\s*\})?\s*(?=\.?[0-9])(?P<rest>[^A-Za-z]*)$"
)
NAMED_TWICE = re.compile(r"^(-?\s*\\?\$[0-9. ]*)USD$")
UNIT_IN_BRACKETS = re.compile(r"(?<=[0-9\s}])\[([A-Za-z/^*. {}0-9\\-]+)\]$")
OVER_NUMBER_I = re.compile(r"(?<![0-9.^/])([0-9]+)\s*/\s*([0-9]+)\s*\*?\s*i(?![A-Za-z(])")

NOT_CONGRUENT = re.compile(r"\\not\s*\\equiv\s*([0-9]{1,2}(?:\s*,\s*[0-9]{1,2})*)\s*\\pmod\{([0-9]{1,2})\}")
DIAGONAL = re.compile(
    r"^(?:\\(?:operatorname|mathrm|text)\{\s*diag\s*\}|\\?diag)\s*(?:\\left)?\(([^()&;\\]{1,200})(?:\\right)?\)$"
)
POLAR = re.compile(rf"^([0-9]+(?:\.[0-9]+)?)\s*\\angle\s*(-?\s*[0-9]+(?:\.[0-9]+)?\s*{_DEGREE})$")
"""A complex number by its size and its angle in degrees: `3\\angle 90^\\circ`."""

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


def preprocessed(text: str, expected: Value | None) -> str:
    """Rewrites everyday notations for the parser: `3 x 10^8`, `FF_{16}`, `where k is an integer`."""
    if "'" in text or '"' in text or "min" in text or "prime" in text:
        text = PARTS_OF_DEGREE.sub(_degrees, text)
    if "dollar" in text:
        text = re.sub(r"\bUS\s+(?=dollars?\b)", "", text)
    if "$" in text or CURRENCY_CODE.match(text):
        text = NAMED_TWICE.sub(r"\1", DOLLAR_SIGN.sub(r"\1\\$", text))
        text = CURRENCY_CODE.sub(_currency_last, text)
    if isinstance(expected, Quantity) and "]" in text:
        text = UNIT_IN_BRACKETS.sub(r" \1", text)
    if isinstance(expected, Scalar) and "i" in text and Constant("i") in walk(expected.of):
        text = OVER_NUMBER_I.sub(r"\\frac{\1}{\2}i", text)
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
        text = NOT_CONGRUENT.sub(_other_residues, text)
    if isinstance(expected, Matrix) and "diag" in text:
        text = DIAGONAL.sub(_diagonal, text)
    if isinstance(expected, Scalar) and "angle" in text:
        text = POLAR.sub(r"\1\\operatorname{cis}(\2)", text)
    text = ALL.sub("", text) if "all" in text else text
    if "integer" in text or "\\in" in text or "for" in text:
        text = _declared(text)
    text = UPRIGHT_DIGITS.sub(r"\1\2", text) if "_" in text else text
    return "0" + text if HEXADECIMAL.fullmatch(text) else text


def _bracketed(array: re.Match[str]) -> str:
    """Rewrites a LaTeX array in brackets as the matrix environment with these brackets."""
    name = BRACKETED[array["opening"]]
    return f"\\begin{{{name}}}{array['rows']}\\end{{{name}}}"


def _degrees(angle: re.Match[str]) -> str:
    """Rewrites an angle in degrees, minutes and seconds as a fraction of degrees. Raises GrammarError for 60 minutes or
    more."""
    minutes, seconds = Fraction(angle[2]), Fraction(angle[3] or 0)
    if minutes >= 60 or seconds >= 60:
        raise GrammarError("minutes or seconds of an angle from 60 on")
    value = Fraction(angle[1]) + minutes / 60 + seconds / 3600
    return rf"\frac{{{value.numerator}}}{{{value.denominator}}}^\circ "


def _other_residues(congruence: re.Match[str]) -> str:
    r"""Rewrites `\not\equiv 0 \pmod{3}` as `\equiv 1,2 \pmod{3}`. Leaves it if no residue remains."""
    modulus = int(congruence[2])
    left = {int(residue) % modulus for residue in congruence[1].split(",")} if modulus else set()
    others = ",".join(str(residue) for residue in range(modulus) if residue not in left)
    return rf"\equiv {others} \pmod{{{modulus}}}" if others else congruence.group()


def _diagonal(matrix: re.Match[str]) -> str:
    entries = matrix[1].split(",")
    rows = (" & ".join(entry if row == at else "0" for at in range(len(entries))) for row, entry in enumerate(entries))
    return "\\begin{pmatrix}" + "\\\\".join(rows) + "\\end{pmatrix}"


def _currency_last(amount: re.Match[str]) -> str:
    """Rewrites `USD 5` as `5 USD`."""
    return f"{amount[1]}{amount['rest'].strip()} {'INR' if amount[2].startswith('Rs') else amount[2]}"


def _declared(text: str) -> str:
    r"""Rewrites a closing clause `where k is an integer` as `, k \in \mathbb{Z}`. Drops `for all real x` after `f(x) =
    ...`."""
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
    """Rewrites a number in words at the start of a text in digits: `twelve dollars` becomes `12 dollars`."""
    words = text.split(" ")
    for count in range(min(len(words) - 1, 8), 0, -1):
        value = number_in_words(" ".join(words[:count]))
        if value is not None:
            return " ".join((str(value), *words[count:]))
    return text


MAX_WRAPPERS = 8
MAX_SUBMISSION = 1_000_000
"""Maximum characters of a text searched for a boxed answer."""
OPENED = re.compile(
    r"""(?:\\(boxed|fbox|text|textrm|textnormal|textup|textbf|textit|mbox|mathrm|mathbf|mathit|mathsf|displaystyle|underline
    |[Ll]arge|LARGE|huge|small)|\\(?:textcolor|color|colorbox)\s*\{[A-Za-z!0-9]{1,30}\})\s*\{""",
    re.VERBOSE,
)
"""Command that only decorates its braced argument."""
BARE_BOX = re.compile(
    r"\\(?:boxed|fbox)\s*([0-9]+(?:\.[0-9]+)?|(?<=\s)[A-Za-z])(?![A-Za-z0-9^_/\\({+*'-]|\s*[0-9]|[.,][0-9])"
)
"""Box without braces around one token, as TeX reads it; refused before further digits, which look the same."""
TRAILERS = "\\,;:!~d"
MAX_TRAILING = 40
TRAILING = re.compile(r"(?:(?<!\\)\\(?:[ ,;:!]|$)|\\q?quad|[\s~,;])+$")
"""Spaces and separators after an answer."""
UPRIGHT = frozenset(
    {"text", "textrm", "textnormal", "textup", "textbf", "textit", "mbox", "mathrm", "mathbf", "mathit", "mathsf"}
)
BOX = re.compile(r"\\(?:boxed|fbox)(?![A-Za-z])")
INLINE = re.compile(r"\\[()]")


def unwrapped(text: str) -> tuple[str, bool]:
    """Strips decoration around a whole answer: dollar signs, boxes, fonts. Also returns True if the content was upright
    text. Raises GrammarError for signs that do not match."""
    text = _without_formula_signs(text.strip())
    upright = False
    for _ in range(MAX_WRAPPERS):
        before = text
        if text[-1:] in TRAILERS:
            text = text[:-MAX_TRAILING] + TRAILING.sub("", text[-MAX_TRAILING:])
        if text[:1] == "\\":
            bare = BARE_BOX.fullmatch(text)
            text = bare[1] if bare else text
        if text.endswith(".") and not text.endswith(("..", "\\right.")):
            text = text[:-1].rstrip()
        if len(text) > 4 and text.startswith("**") and text.endswith("**") and "**" not in text[2:-2]:
            text = text[2:-2].strip()
        if text.startswith("\\[") and text.endswith("\\]"):
            text = text[2:-2].strip()
        match = OPENED.match(text)
        if match and text.endswith("}") and closing(text, match.end()) == len(text) - 1:
            inside = text[match.end() : -1].strip()
            if match[1] == "mathbf" and len(inside) == 1 and inside.islower():
                # A vector of that name, not the letter.
                break
            upright = upright or match[1] in UPRIGHT
            text = inside
        if text.startswith("\\displaystyle"):
            text = text.removeprefix("\\displaystyle").strip()
        if text == before:
            break
    return text, upright


def _without_formula_signs(text: str) -> str:
    r"""Drops `$`, `$$`, `\(` and `\)` around formulas. A single dollar sign is money."""
    if "$" in text:
        signs = len(re.findall(r"(?<!\\)\$", text))
        if signs % 2 == 0:
            text = re.sub(r"(?<!\\)\$", " ", text).strip()
    if "\\(" in text or "\\)" in text:
        found = INLINE.findall(text)
        if found != ["\\(", "\\)"] * (len(found) // 2):
            raise GrammarError("signs around a formula that do not match")
        text = INLINE.sub(" ", text).strip()
    return text


def closing(text: str, start: int) -> int:
    """Returns the index of the brace that closes the one just before `start`; -1 if none does."""
    depth = 1
    for match in re.compile(r"\\.|[{}]", re.DOTALL).finditer(text, start):
        sign = match.group()
        if sign == "{":
            depth += 1
        elif sign == "}":
            depth -= 1
            if depth == 0:
                return match.start()
    return -1


def boxed(text: str) -> str:
    """Returns the content of the only box of a text. Raises GrammarError for none, several, or an unclosed one."""
    if len(text) > MAX_SUBMISSION:
        raise TooLargeError(f"longer than {MAX_SUBMISSION} characters")
    boxes = list(BOX.finditer(text))
    if not boxes:
        raise GrammarError("no boxed answer")
    if len(boxes) > 1:
        raise GrammarError(f"{len(boxes)} boxed answers, where exactly one is required")
    bare = BARE_BOX.match(text, boxes[0].start())
    if bare:
        return bare[1]
    start = boxes[0].end()
    while start < len(text) and text[start] in " \t\n":
        start += 1
    if start >= len(text) or text[start] != "{":
        raise GrammarError("a box without braces")
    end = closing(text, start + 1)
    if end < 0:
        raise GrammarError("an unclosed box")
    return text[start + 1 : end]
