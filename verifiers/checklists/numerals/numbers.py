"""Numbers in a text as a reader understands them: digits with separators, sign, factor and share, and number words.
- A number's value comes from its whole form: `200k`, `200 bn`, `200 × 10³`, `–200`, `minus 200`, `200½` differ from
  200; `(200)` is -200 in a table cell, and ambiguous in a sentence.
- Separators follow the text: its other numbers, else its language, decide whether `1.234` or `1,234` is a decimal.
  Thousands may be separated by a comma, a point, an apostrophe or a narrow blank.
- An ambiguous number (`5 200`, `3,5` in English, `200/3`) agrees with the facts if one of its readings does, but
  never counts as a required number. Neither do dates, ratios, ordinals and bounds (`> 200`).
- Digits that belong to a name (`H2O`, `COVID-19`, `1.2.3`, `0x200`) are not numbers.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise

from verifiers.answers.grammar.numerals import QUOTE, SEPARATED, SIGNS, THIN, Decimals, readings
from verifiers.checklists.numerals.factors import SHARE, Tail
from verifiers.checklists.numerals.measures import (
    BELOW_ZERO,
    CLOSED,
    MINUS,
    MONEY,
    OPENED,
    is_negative,
    may_be_below_zero,
    unit_of,
)
from verifiers.checklists.numerals.number_words import SpelledNumber, foreign, spelled
from verifiers.checklists.words.prose import COMMA, language_of

DIGITS = {
    sign: value
    for value, signs in enumerate(("零〇", "一", "二两兩", "三", "四", "五", "六", "七", "八", "九"))
    for sign in signs
}
SCALES = {"十": 10, "百": 100, "千": 1_000}
GREAT = {"万": 10**4, "萬": 10**4, "亿": 10**8, "億": 10**8}
NUMERAL = re.compile(f"(百分之)?([{''.join(DIGITS)}十][{''.join((*DIGITS, *SCALES, *GREAT))}]+)(?!分之)")


def han_numbers(text: str) -> Iterator[tuple[int, int, Fraction, bool]]:
    """Yields each Chinese numeral as start, end, value, and True if it is a share such as a percentage."""
    for found in NUMERAL.finditer(text):
        value = _value(found[2])
        if value is not None:
            yield found.start(), found.end(), Fraction(value), found[1] is not None


def _value(numeral: str) -> int | None:
    total = part = 0
    digit: int | None = None
    lowest = 10
    for sign in numeral:
        if sign in DIGITS:
            if digit:
                return None
            digit = DIGITS[sign]
            lowest = 10 if digit == 0 else lowest
        elif sign in SCALES:
            part += (1 if digit is None else digit) * SCALES[sign]
            digit, lowest = None, SCALES[sign]
        else:
            total, part = total + (part + (digit or 0)) * GREAT[sign], 0
            digit, lowest = None, GREAT[sign]
    if digit is not None and lowest > 10:
        return None
    return (
        total + part + (digit or 0) if len(numeral) > 1 and any(sign in numeral for sign in (*SCALES, *GREAT)) else None
    )


BLANKS = re.compile("[\u00a0\u2000-\u200a\u202f\u205f]")
CORE = re.compile(rf"(?<![\d.,])(?:\d+⁄\d+|{SEPARATED}|\.\d+)(?!\d)")
SUPERSCRIPTS = re.compile("[⁰¹²³⁴-⁹⁻⁺]+")
BELOW = re.compile("(?<=[A-Za-z])[₀-₉]+")
SUBSCRIPTS = re.compile("[₀-₉]+")
VULGAR = re.compile("(?<=[0-9])([¼-¾⅐-⅞])")
BEFORE = re.compile(r"([^\W\d_]+)([-\u2010\u2011]?)$")
CURRENCIES = frozenset(
    re.findall(
        r"\w+",
        "USD EUR GBP CHF JPY CNY CAD AUD INR RM Rp Rs KSh Ksh TSh USh SEK NOK DKK PLN CZK HUF TRY BRL MXN ZAR KRW"
        " SGD HKD NZD IDR MYR THB PHP VND KES NGN EGP SAR AED ILS RUB UAH",
    )
)
LENGTHS = frozenset({"km", "m", "dm", "cm", "mm", "ft", "mi"})
LABEL = re.compile(r"([^\W\d_]+)\s?[:=(\u2012-\u2015-]\s?$")
"""Label before a number, which may be the counted thing: `Teachers: 14`."""
ENDED = re.compile(r"\s*(?:[^\w\s]|\n|$|[^\W\d_]+\s?[:=])")
BOUND = re.compile(rf"[<>≤≥≠±√≮≯]\s?{MONEY}$")
RANGE = re.compile(rf"\s?[-\u2010-\u2014]\s?{MONEY}|\s(?:to|or|bis|oder|à|a|hasta|до)\s{MONEY}")
ORDINAL = re.compile(r"(?:st|nd|rd|th|ers?|ère|ème|er|º|ª)(?!\w)")
DATE = re.compile(
    r"(?<!\d)(?:\d{4}([-/.])\d{1,2}\1\d{1,2}|\d{1,2}([-/.])\d{1,2}\2(?:\d{4}|\d{2}))(?!\d)"
    r"|(?<!\d)\d{1,2}:\d{2}(?::\d{2})?(?!\d)"
)
NAME = re.compile(r"(?<!\w)(?:0[xXbBoO]\w+|v?\d+(?:\.\d+){2,}(?![,\d])|\d+(?:-\d+){2,})(?!\w)")
"""Hexadecimal numbers, versions, addresses, and telephone numbers."""
ENGLISH_SHARE = re.compile(r"[\s-](?:per\s?cent|pct|percentage)(?!\w)", re.IGNORECASE)
MAX_DIGITS = 300


@dataclass(frozen=True)
class Figure:
    """A number as written, with its value, decimals and unit."""

    text: str
    value: Fraction
    percent: bool = False
    decimals: int = 0
    """Decimal places; negative with a factor: `3.2 million` is exact to 100,000."""
    significant: int = 0
    """Digits without leading zeros; 0 for number words."""
    scale: tuple[Fraction | int, bool] = (1, False)
    """The factor after the digits, and True for a share."""
    unit: str = ""
    """Unit as named in `measures`; empty if unknown."""
    counted: tuple[str, ...] = ()
    """Words after a number without a unit; the counted thing is among them."""


@dataclass(frozen=True)
class WrittenNumber:
    """Number at one place of a text, with its possible readings."""

    text: str
    readings: tuple[tuple[Figure, ...], ...]
    """Possible readings: each is one number, or several."""
    stated: bool = True
    """True for an amount of its own, not part of a date, a ratio or a bound."""
    lost: bool = False
    """True for a loss, which may count as negative."""

    @property
    def said(self) -> Figure | None:
        """The written number if it has exactly one reading, else None."""
        only = self.readings[0] if len(self.readings) == 1 else ()
        return only[0] if self.stated and len(only) == 1 else None

    def says(self, asked: Figure) -> bool:
        """True if a written number is unambiguously the required one. Its unit must be the same or missing."""
        said = self.said
        if said is None or said.percent != asked.percent:
            return False
        if asked.value != said.value and not (self.lost and asked.value == -said.value < 0):
            return False
        return said.unit in ("", asked.unit) or not asked.unit


def decimals_of(text: str) -> Decimals:
    """Returns the decimal separator of a text, `point` or `comma`, judged by its numbers, else by its language."""
    votes: Counter[Decimals] = Counter()
    for match in CORE.finditer(_normal(NAME.sub("", DATE.sub("", text)))):
        signs, parts = SIGNS.findall(match.group()), SIGNS.split(match.group())
        last = signs[-1] if signs else ""
        if last not in (".", ","):
            continue
        if signs.count(last) > 1:
            if len(set(signs)) == 1 and all(len(part) == 3 for part in parts[1:]):
                votes["point" if last == "," else "comma"] += 1
        elif len(signs) > 1 or len(parts[-1]) != 3 or parts[0] == "0":
            votes["comma" if last == "," else "point"] += 1
    language = language_of(text)
    usual: Decimals = "comma" if language in COMMA else "point" if language else ""
    if votes["comma"] == votes["point"]:
        return usual
    if usual == "point" and language == "en":
        return "point"
    return "comma" if votes["comma"] > votes["point"] else "point"


def numbers_in(
    text: str, decimals: Decimals = "point", *, cell: bool = False, language: str = "en", marks: Collection[str] = ()
) -> list[WrittenNumber]:
    """Returns all numbers of a text, those in digits first, then those in words; overlong ones are skipped. `cell`: the
    text is a table cell; `language`: used if the text does not show its own; `marks`: letters that may precede digits
    without forming a name (`RM450`)."""
    text = _normal(text)
    dates = [(match.start(), match.end()) for match in DATE.finditer(text)]
    seen = NAME.sub(lambda name: " " * len(name.group()), _undated(text, dates))
    places: list[_NumberPlace] = []
    for match in CORE.finditer(seen):
        if places and match.start() < places[-1].end:
            continue
        near = dates[bisect_right(dates, (match.start(), len(text))) - 1 :][:1]
        dated = len(match.group()) < 4 and any(start <= match.start() < end for start, end in near)
        if len(match.group()) <= MAX_DIGITS and not _is_name(text, match.start(), match.group(), marks):
            places.append(_number(seen, match, decimals, cell, dated))
    for first, second in reversed(list(pairwise(places))):
        if RANGE.fullmatch(seen[first.end : second.start]):
            first.number = _as_well(first.number, second.number)
    return [*(place.number for place in places), *_spelled(text, language)]


def _normal(text: str) -> str:
    """Normalises digits, blanks and apostrophes; superscripts and subscripts stay separate from their base."""
    text = SUPERSCRIPTS.sub(lambda raised: f"^({unicodedata.normalize('NFKC', raised.group())})", text)
    text = re.sub(r"(?<=[A-Za-zµΩ])\^\([-−+\d]+\)", "", text)
    text = BELOW.sub(lambda lowered: unicodedata.normalize("NFKC", lowered.group()), text)
    text = SUBSCRIPTS.sub(lambda lowered: f"_{unicodedata.normalize('NFKC', lowered.group())}", text)
    text = unicodedata.normalize("NFKC", BLANKS.sub(THIN, VULGAR.sub(r" \1", text)).replace(THIN, "\x1f"))
    text = text.replace("\x1f", THIN).translate(
        {0x66B: ".", 0x66C: ",", 0x2018: QUOTE, 0x2019: QUOTE, 0x2212: "−", 0x2796: "−"}
    )
    return re.sub(rf"{THIN}(?!\d)|(?<!\d){THIN}", " ", text)


def _undated(text: str, dates: list[tuple[int, int]]) -> str:
    """Replaces the signs inside dates and times by bars, so that their numbers are read separately."""
    kept, at = [], 0
    for start, end in dates:
        kept += [text[at:start], re.sub(r"\D", "|", text[start:end])]
        at = end
    return "".join([*kept, text[at:]])


@dataclass
class _NumberPlace:
    start: int
    end: int
    number: WrittenNumber


def _as_well(first: WrittenNumber, second: WrittenNumber) -> WrittenNumber:
    """Adds readings to a range's first number, with the factor or percent sign of the second: `5-10 %`. Also in words,
    `200 to 300 million`."""
    if len(first.readings) > 1 or len(first.readings[0]) > 1 or first.readings[0][0].scale != (1, False):
        return first
    one = first.readings[0][0]
    others = {reading[0].scale for reading in second.readings if len(reading) == 1} - {(1, False)}
    more = tuple((replace(one, value=one.value * factor, percent=percent),) for factor, percent in sorted(others))
    return replace(first, readings=(*first.readings, *more))


def _number(text: str, match: re.Match[str], decimals: Decimals, cell: bool, dated: bool) -> _NumberPlace:
    start = match.start()
    before = text[max(0, start - 80) : start]
    tail = Tail(text, match.end(), before, len(match.group()))
    negative = is_negative(before, text[tail.end : tail.end + 200], cell)
    core = match.group()
    possible = []
    for parts in readings(core, decimals):
        figures = [_figure(part, core) for part in parts]
        last = figures[-1]
        value = (last.value + tail.added) * tail.factor * (tail.share or 1)
        places = last.decimals - (len(str(int(tail.factor))) - 1 if tail.factor >= 1 else 0)
        percent = tail.share is not None
        scale = (tail.factor * (tail.share or 1), percent)
        unit, counted = (_share(tail), ()) if percent else _of_what(before, text[tail.end : tail.end + 60])
        figures[-1] = replace(
            last, value=value, decimals=places, percent=percent, scale=scale, unit=unit, counted=counted
        )
        if negative:
            figures[0] = replace(figures[0], value=-figures[0].value)
        written = text[start : tail.end].strip()
        possible.append(tuple(replace(one, text=f"-{written}" if negative else written) for one in figures))
    after = text[tail.end : tail.end + 12]
    lost = not negative and may_be_below_zero(before, text[tail.end : tail.end + 40])
    in_brackets = OPENED.search(before) and CLOSED.match(after)
    if in_brackets and not cell:
        possible += [tuple(replace(one, value=-one.value) for one in reading) for reading in possible[:1]]
    ratio = re.match(r"\s?[/:]\s?\d", after) or re.search(r"\d\s?[/:]\s?$", before)
    torn = re.match(r"\s0\d*(?![\d.,])", after) is not None
    joined = torn or dated or bool(ratio) or tail.raised or ORDINAL.match(after) is not None
    stated = not joined and not BOUND.search(before) and not (in_brackets and not cell and not _named(before))
    return _NumberPlace(start, tail.end, WrittenNumber(possible[0][0].text, tuple(possible), stated, lost))


def _named(before: str) -> bool:
    """True if a text ends with a number word and an open bracket, as `two hundred (`. Digits in the bracket then only
    repeat it."""
    opened = OPENED.search(before)
    return opened is not None and any(one.end >= opened.start() - 1 for one in spelled(before, SHARE))


def _figure(digits: str, text: str) -> Figure:
    upper, _, lower = digits.partition("⁄")
    value = Fraction(int(upper), int(lower)) if lower and int(lower) else Fraction(upper)
    return Figure(text, value, False, len(digits.partition(".")[2]), len(digits.replace(".", "").lstrip("0")))


def _is_name(text: str, start: int, digits: str, marks: Collection[str]) -> bool:
    """True if digits belong to a name with the letters before them, as in `H2O`, `GPT4`, `COVID-19` and `m2`. False for
    `USD999`, `rose9` and `mid-2024`: digits glued to an ordinary word are still a number."""
    before = BEFORE.search(text, max(0, start - 40), start)
    if before is None or before[1] in CURRENCIES or before[1] in marks:
        return False
    if before[2]:
        return before[1] != before[1].lower()
    short = len(before[1]) <= 5 and before[1][1:] != before[1][1:].lower()
    return len(before[1]) == 1 or short or _is_power(before[1], digits)


def _share(tail: Tail) -> str:
    return "points" if tail.points else "%"


def _of_what(before: str, after: str) -> tuple[str, tuple[str, ...]]:
    """Returns a number's unit, from the text around it. Without a known unit, returns the words that label or follow
    it."""
    unit = unit_of(before, after)
    label = LABEL.search(before) if ENDED.match(after) else None
    near = label or re.match(r"[\s-]?((?:[^\W\d_]+[ -]){0,2}[^\W\d_]+)", after)
    return unit, () if unit or not near else tuple(re.split("[ -]", near[1].casefold()))


def _is_power(unit: str, digits: str) -> bool:
    return unit in LENGTHS and digits in ("2", "3")


def _spelled(text: str, language: str) -> Iterator[WrittenNumber]:
    language = language_of(text, language)
    words = [SpelledNumber(*one, False) for one in foreign(text, language)]
    for one in [*spelled(text, SHARE), *words]:
        if language != "en" and one not in words and not ENGLISH_SHARE.match(text, one.end):
            continue
        before = text[max(0, one.start - 40) : one.start]
        tail = Tail(text, one.end, before, 0)
        after = text[tail.end : tail.end + 60]
        negative = MINUS.search(before) is not None or BELOW_ZERO.match(after) is not None
        value = (one.value + tail.added) * tail.factor * (tail.share or 1) * (-1 if negative else 1)
        written = text[one.start : tail.end]
        unit, counted = (_share(tail), ()) if tail.share is not None else _of_what(before, after)
        said = Figure(written, value, tail.share is not None, unit=unit, counted=counted)
        lost = not negative and may_be_below_zero(before, after)
        yield WrittenNumber(written, ((said,),), not one.ordinal and not tail.raised, lost)
    for start, end, value, percent in han_numbers(text):
        unit, counted = ("%", ()) if percent else _of_what("", text[end : end + 60])
        said = Figure(text[start:end], value, percent, unit=unit, counted=counted)
        yield WrittenNumber(said.text, ((said,),))
