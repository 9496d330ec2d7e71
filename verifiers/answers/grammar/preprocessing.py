r"""Rewrites an answer's text before it is parsed: conventions, decoration, and answers in words.

The expected answer may settle an ambiguous convention; each is searched in the whole text or at its end. A wrapper
(dollar signs, `\boxed{}`, `\text{}`) is removed only if it encloses the whole text; brackets are matched in one pass. A
text of letters is words if one of them is not a plausible product: five letters, a short English word, or letters out
of order. `xy`, `abc` and `mn` stay products; `yes`, `Bob` and `no solution` are words.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection
from fractions import Fraction

from verifiers.answers.grammar.errors import GrammarError, TooLargeError
from verifiers.answers.grammar.nodes import Constant, Symbol, walk
from verifiers.answers.grammar.number_words import number_in_words
from verifiers.answers.grammar.values import BaseNumber, Choice, Listing, Quantity, Ratio, Scalar, TextAnswer, Value
from verifiers.answers.grammar.vocabulary import CUSTOMARY, EXTENDED, GREEK_NAMES, SHORT_WORDS, WORD_PARTS

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
PARTS_OF_DEGREE = re.compile(
    rf"""(?<![0-9.])([0-9]{{1,4}})\s*{_DEGREE}\s*,?\s*([0-9]{{1,2}})\s*(?:{_PRIME}(?!')|min(?:utes?)?\b|arcmin\b)
    (?:\s*,?\s*([0-9]{{1,2}}(?:\.[0-9]{{1,9}})?)\s*(?:\"|{_PRIME}\s*{_PRIME}|\^\{{\\prime\s*\\prime\}}|sec(?:onds?)?\b|arcsec\b))?""",
    re.VERBOSE,
)
"""An angle in degrees, minutes and seconds: `45^\\circ 30' 15''`."""
DOLLAR_SIGN = re.compile(r"^(-?)\s*(?:US|U\.S\.|\\(?:text|mathrm)\{\s*US\s*\})\s*\\?\$")
CURRENCY_CODE = re.compile(
    r"^(-?)\s*(?:\\(?:text|mathrm)\{\s*)?(USD|EUR|GBP|JPY|INR|Rs\b\.?)(?:\s*\})?\s*(?=\.?[0-9])(?P<rest>[^A-Za-z]*)$"
)
NAMED_TWICE = re.compile(r"^(-?\s*\\?\$[0-9. ]*)\s*USD$")
UNIT_IN_BRACKETS = re.compile(r"(?<=[0-9\s}])\[\s*((?:[A-Za-z/^*. {}0-9-]|\\[A-Za-z]+\s*)+)\s*\]$")
OVER_NUMBER_I = re.compile(r"(?<![0-9.^/])([0-9]+)\s*/\s*([0-9]+)\s*\*?\s*i(?![A-Za-z(])")

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
_LABEL = r"[(\"'\[]?[A-Z][)\"'\]]?"
LETTERS = re.compile(rf"{_LABEL}(?:\s*(?:,\s*and\b|[,;&]|\band\b|\\text\{{\s*and\s*\}})\s*{_LABEL})+")
CHOSEN = re.compile(r"[A-Z]{2,12}")


def preprocessed(text: str, expected: Value | None) -> str:
    """Rewrites everyday notations for the parser: `3 x 10^8`, `FF_{16}`, `where k is an integer`."""
    if "'" in text or '"' in text or "min" in text or "prime" in text:
        text = PARTS_OF_DEGREE.sub(_degrees, text)
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
    text = ALL.sub("", text)
    if "integer" in text or "\\in" in text or "for" in text:
        text = _declared(text)
    text = UPRIGHT_DIGITS.sub(r"\1\2", text)
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


def several_choices(text: str, expected: Value | None) -> Value | None:
    """Reads a text such as `ACD` or `(A), (C)` as several chosen letters, if such are expected; else None."""
    match expected:
        case Listing(items):
            wanted = [item.of.name for item in items if isinstance(item, Scalar) and isinstance(item.of, Symbol)]
            plain = len(wanted) == len(items) == len(set(wanted)) and all(
                len(name) == 1 and name.isupper() for name in wanted
            )
            bare = unmarked(text) if plain else text
            letters = _letters(bare) or (list(bare) if CHOSEN.fullmatch(bare) else [])
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


MAX_WORDS = 300
"""Maximum length of a text answer, in characters."""
CHOICE = re.compile(r"(?:(?:option|choice|answer)\s*)?(?:\(\s*([a-z])\s*\)|([a-z])\s*\)?)", re.IGNORECASE)
CALLED = re.compile(
    r"(?:the\s+)?(?:correct\s+|final\s+)?(?:option|choice|answer|alternative)s?(?:\s+(?:is|are)\b)?\s*[:=]?\s*",
    re.IGNORECASE,
)
MARKS = {"(": ")", "[": "]", "{": "}", "<": ">", '"': '"', "'": "'", "`": "`", "*": "*", "_": "_"}
"""Signs around the label of a choice, or around a list of labels."""
USUAL = frozenset("abcd")
"""Labels that are also written in lower case without brackets."""
WORD_LETTERS = re.compile(r"[^\W\d_]+(?:[ \t\n]+[^\W\d_]+)*")
LOOSE = re.compile(r"[^\W_](?:[^\W_]|[ ,.'&/:-])*")
DATE = re.compile("[0-9]{4}-[0-9]{2}-[0-9]{2}")
CLOCK = re.compile(
    r"([0-9]{1,2})(?:\\!)*:(?:\\!)*([0-9]{2})(?::([0-9]{2}))?(?:\s|~|\\,)*(?:([ap])\.?\s*m\.?|\\(?:text|mathrm)\{\s*([ap])\.?\s*m\.?\s*\})?",
    re.IGNORECASE,
)
"""Time of day, with two digits after each colon: `3:2` is a ratio, and so is `3 : 20` with blanks."""
MONTHS = re.compile(
    r"\b(january|february|march|april|may|june|july|august|september|october|november|december)\b", re.IGNORECASE
)
ORDINAL = re.compile(r"[0-9]+(?:st|nd|rd|th)", re.IGNORECASE)


def choice(text: str, *, upright: bool = False, expected: Choice | None = None) -> Choice | None:
    r"""Returns the label of a choice written `(A)`, `A)` or `Option B`; None for other texts. A lower-case letter needs
    an expected choice. `upright`: the text stood within `\text`. A lower-case letter alone is a label only from a to d,
    or if the expected label is marked as one: `r` is another symbol than `R`, and `e` is Euler's number."""
    found = CHOICE.fullmatch(text if expected is None else unmarked(text))
    if found is None:
        return None
    label = found[1] or found[2]
    marked = upright or len(text) > 1
    folds = len(text) > 4 if expected is None else marked or expected.marked or label in USUAL
    return Choice(label.upper(), marked) if folds or label.isupper() else None


def unmarked(text: str) -> str:
    """Strips signs and words around the label of a choice: `{B}`, `"B"`, `B:`, `Answer: [B]`."""
    text = text.replace("\\{", "{").replace("\\}", "}")
    called = CALLED.match(text)
    bare = text[called.end() :] if called and called.end() < len(text) else text
    for _ in range(MAX_WRAPPERS):
        inner = bare[:-1] if bare[-1:] in (".", ":", "]") and MARKS.get(bare[:1]) != bare[-1:] else bare
        if len(inner) > 2 and MARKS.get(inner[0]) == inner[-1]:
            inner = inner[1:-1]
        if inner == bare:
            break
        bare = inner.strip()
    return bare


def folded(text: str) -> TextAnswer:
    written = " ".join(unicodedata.normalize("NFC", text).split())
    return TextAnswer(written.casefold(), written)


def clock(text: str, *, certain: bool) -> TextAnswer | None:
    """Reads a time of day; None if the text is none or, with `certain`, lacks `am` or `pm`."""
    found = CLOCK.fullmatch(text)
    if found is None:
        return None
    hour, minute, second, *halves = found.groups()
    half = next((letter.lower() + "m" for letter in halves if letter), "")
    if int(hour) > 24 or int(minute) > 59 or int(second or 0) > 59 or (certain and not half):
        return None
    return TextAnswer(":".join(part for part in (hour, minute, second) if part) + half)


def certain_words(text: str, names: Collection[str], *, clocks: bool = True) -> TextAnswer | None:
    """Reads a text as words if it cannot be mathematics, such as a date or an English word; else None. `clocks`: `3:20`
    is a time of day; else it is a ratio."""
    if len(text) > MAX_WORDS:
        return None
    if DATE.fullmatch(text):
        return TextAnswer(text)
    time = clock(text, certain=not clocks)
    if time is not None:
        return time
    if ORDINAL.fullmatch(text):
        return folded(text)
    if not WORD_LETTERS.fullmatch(text):
        return None
    parts = text.split()
    return None if all(_is_mathematical(part, names, alone=len(parts) == 1) for part in parts) else folded(text)


def _is_mathematical(word: str, names: Collection[str], *, alone: bool) -> bool:
    if len(word) == 1 or word in names or word in EXTENDED or word in GREEK_NAMES or word in VALUES:
        return True
    if word in ("and", "or"):
        return not alone
    if len(word) < 5 and len(names) > 1 and set(word) <= set(names) and word.lower() not in ("no", "ok"):
        # `am` beside `F = ma`.
        return True
    if len(word) > 4 or not word.isascii() or word.lower() in SHORT_WORDS:
        return False
    return len(word) == 2 or bool(CUSTOMARY.fullmatch(word)) or set(word) <= set(names)


VALUES = frozenset({"pi", "infinity", "Infinity", "oo", "inf", "nan"})


COMPOUND = re.compile(r"[0-9]{1,2}(?:,[0-9]{1,2})*-[a-z][a-z0-9,-]*(?:[aey]ne|ol|al|one|ate|ide|ose|yl|ine|acid)")
"""Chemical name that begins with the positions of its groups: `2-butene`, `1,2-dichloroethane`."""


def loose_words(text: str) -> TextAnswer | None:
    """Reads a text as words if it looks like some: letters first, a date, an ordinal, `2-butene`; else None."""
    if len(text) > MAX_WORDS:
        return None
    if COMPOUND.fullmatch(text) and not WORD_PARTS.search(text):
        return folded(text)
    if not LOOSE.fullmatch(text):
        return None
    if text[0].isdigit() and not MONTHS.search(text) and not ORDINAL.fullmatch(text):
        return None
    return folded(text) if re.search(r"[^\W\d_]{2}", text) else None
