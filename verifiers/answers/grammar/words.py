r"""Answers in words: labels of choices, names, dates, times of day.

A text of letters is words if one of them is not a plausible product: five letters, a short English word, or letters out
of order. `xy`, `abc` and `mn` stay products; `yes`, `Bob` and `no solution` are words. The label of a choice may have
signs and words around it, see `unmarked`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection

from verifiers.answers.grammar.nodes import Symbol
from verifiers.answers.grammar.values import Choice, Listing, Scalar, TextAnswer, Value
from verifiers.answers.grammar.vocabulary import CUSTOMARY, EXTENDED, GREEK_NAMES, SHORT_WORDS, WORD_PARTS

_LABEL = r"[(\"'\[]?[A-Z][)\"'\]]?"
LETTERS = re.compile(rf"{_LABEL}(?:\s*(?:,\s*and\b|[,;&]|\band\b|\\text\{{\s*and\s*\}})\s*{_LABEL})+")
CHOSEN = re.compile(r"[A-Z]{2,12}")
MAX_MARKS = 8
"""Pairs of signs around a label."""
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
    for _ in range(MAX_MARKS):
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
