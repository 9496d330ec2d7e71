"""Answers in words: choices, yes and no, names, dates; distinguishes them from products of letters.

A text of letters is words if one of them is not a plausible product: five letters, a short English word, or letters out
of order. `xy`, `abc` and `mn` stay products; `yes`, `Bob` and `no solution` are words.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection

from verifiers.answers.grammar.values import Choice, TextAnswer
from verifiers.answers.grammar.vocabulary import CUSTOMARY, EXTENDED, GREEK_NAMES, SHORT_WORDS, WORD_PARTS

MAX_WORDS = 300
"""Maximum length of a text answer, in characters."""
CHOICE = re.compile(r"(?:(?:option|choice|answer)\s*)?(?:\(\s*([a-z])\s*\)|([a-z])\s*\)?)", re.IGNORECASE)
USUAL = frozenset("abcd")
"""Labels that are also written in lower case without brackets."""
LETTERS = re.compile(r"[^\W\d_]+(?:[ \t\n]+[^\W\d_]+)*")
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
    r"""Returns the label of `(A)`, `A)`, `Option B`; also of a lower-case letter if a choice is expected.

    `upright`: the text stood within `\text`. A lower-case letter alone is a label only from a to d, or if the expected
    label is marked as one: `r` is another symbol than `R`, and `e` is Euler's number.
    """
    found = CHOICE.fullmatch(text)
    if found is None:
        return None
    label = found[1] or found[2]
    marked = upright or len(text) > 1
    folds = len(text) > 4 if expected is None else marked or expected.marked or label in USUAL
    return Choice(label.upper(), marked) if folds or label.isupper() else None


def folded(text: str) -> TextAnswer:
    written = " ".join(unicodedata.normalize("NFC", text).split())
    return TextAnswer(written.casefold(), written)


def clock(text: str, *, certain: bool) -> TextAnswer | None:
    """Returns a time of day; with `certain`, only one that names its half of the day."""
    found = CLOCK.fullmatch(text)
    if found is None:
        return None
    hour, minute, second, *halves = found.groups()
    half = next((letter.lower() + "m" for letter in halves if letter), "")
    if int(hour) > 24 or int(minute) > 59 or int(second or 0) > 59 or (certain and not half):
        return None
    return TextAnswer(":".join(part for part in (hour, minute, second) if part) + half)


def certain_words(text: str, names: Collection[str], *, clocks: bool = True) -> TextAnswer | None:
    """Returns words if the text cannot be anything else: dates, and letters with a word that is not a product.

    `clocks`: `3:20` is a time of day; else it is a ratio.
    """
    if len(text) > MAX_WORDS:
        return None
    if DATE.fullmatch(text):
        return TextAnswer(text)
    time = clock(text, certain=not clocks)
    if time is not None:
        return time
    if ORDINAL.fullmatch(text):
        return folded(text)
    if not LETTERS.fullmatch(text):
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
    """Returns words that are not mathematics: a text that begins with a letter, a date, an ordinal, or a name such as
    `2-butene`."""
    if len(text) > MAX_WORDS:
        return None
    if COMPOUND.fullmatch(text) and not WORD_PARTS.search(text):
        return folded(text)
    if not LOOSE.fullmatch(text):
        return None
    if text[0].isdigit() and not MONTHS.search(text) and not ORDINAL.fullmatch(text):
        return None
    return folded(text) if re.search(r"[^\W\d_]{2}", text) else None
