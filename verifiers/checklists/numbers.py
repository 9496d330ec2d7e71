"""Numbers in a text, exactly: digits with separators, decimals, percentages, `3.2 million`, and English number words.

`one` is not read as a number: it is a pronoun as often. Digits that belong to a name (`H2O`, `COVID-19`) are no
numbers.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import permutations

NUMBER = re.compile(
    r"(?<!\d)(?<!\d[.,])(?P<sign>(?<![\w)\]])[-+\u2212\u2013](?=\.?\d))?"
    r"(?P<digits>\d{1,3}(?:,\d{3})+(?:\.\d+)?(?!\d)|\d+(?:\.\d+)?|(?<!\d)\.\d+)(?P<power>[eE][-+]?\d{1,3}(?!\w))?"
    r"(?P<after>\s?(?:%|percent\b|per cent\b)|\s(?:thousand|million|billion|trillion)\b)?"
)
BEFORE = re.compile(r"([^\W\d_]+)([-\u2010\u2011]?)$")
CURRENCIES = frozenset({"USD", "EUR", "GBP", "CHF", "JPY", "CNY", "CAD", "AUD", "INR"})
LENGTHS = frozenset({"km", "m", "dm", "cm", "mm", "ft", "mi"})
POWERS = re.compile("(?<=[A-Za-z])[\u00b9\u00b2\u00b3\u2070-\u207f]+")
"""Behind letters they belong to a unit: `km\u00b2`."""
SCALES = {"hundred": 100, "thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
SMALL = "zero - two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen"
SMALL += " eighteen nineteen"
TENS = "- - twenty thirty forty fifty sixty seventy eighty ninety"
WORDS = {
    **{word: value for value, word in enumerate(SMALL.split()) if word != "-"},
    **{word: 10 * value for value, word in enumerate(TENS.split()) if word != "-"},
}
SPELLED = re.compile(
    r"(?<!\w)(?:"
    + "|".join([*WORDS, *SCALES, "one"])
    + r")(?:[-\s]+(?:and\s+)?(?:"
    + "|".join([*WORDS, *SCALES, "one"])
    + r"))*(?!\w)",
    re.IGNORECASE,
)
MAX_DIGITS = 300


@dataclass(frozen=True)
class Figure:
    """A number as it was written."""

    text: str
    value: Fraction
    percent: bool = False
    decimals: int = 0
    significant: int = 0
    """Digits without leading zeros; 0 for numbers in words."""


def figures(text: str) -> list[Figure]:
    """All numbers of a text, in order of their kind: digits first, then words. Overlong ones are left out."""
    seen = unicodedata.normalize("NFKC", POWERS.sub("", text))
    return [*_digits(seen), *_spelled(seen)]


def figure(text: str) -> Figure | None:
    """The number that a cell or a fact holds, perhaps with a sign of a currency or a unit behind it."""
    found = list(_digits(re.sub(r"[$\u20ac\u00a3\u00a5*]", "", text).strip()))
    return found[0] if len(found) == 1 else None


def _digits(text: str) -> Iterator[Figure]:
    for match in NUMBER.finditer(text):
        digits = match["digits"].replace(",", "")
        if len(digits) > MAX_DIGITS or _is_name(text, match.start(), digits):
            continue
        value = Fraction(digits + (match["power"] or ""))
        after = (match["after"] or "").strip()
        percent = bool(after) and after not in SCALES
        value *= SCALES.get(after, 1) * (-1 if match["sign"] in ("-", "\u2212") else 1)
        decimals = 0 if match["power"] or after in SCALES else len(digits.partition(".")[2])
        significant = len(digits.replace(".", "").lstrip("0"))
        yield Figure(match.group().strip(), value, percent, decimals, significant)


def _is_name(text: str, start: int, digits: str) -> bool:
    """Whether digits belong to letters before them, as in `H2O`, `GPT4`, `COVID-19` and `m2`.

    Not so in `USD999`, `rose9` and `mid-2024`: what is glued to an ordinary word is still a number.
    """
    before = BEFORE.search(text, max(0, start - 40), start)
    if before is None or before[1] in CURRENCIES:
        return False
    if before[2]:
        return before[1] != before[1].lower()
    return len(before[1]) == 1 or (before[1].isupper() and len(before[1]) <= 5) or _is_power(before[1], digits)


def _is_power(unit: str, digits: str) -> bool:
    return unit in LENGTHS and digits in ("2", "3")


def _spelled(text: str) -> Iterator[Figure]:
    for match in SPELLED.finditer(text):
        parts = re.findall(r"[a-z]+", match.group().lower())
        parts = [part for part in parts if part != "and"]
        if parts == ["one"] or all(part in SCALES for part in parts):
            continue
        total = small = 0
        for part in parts:
            if part == "hundred":
                small = max(small, 1) * 100
            elif part in SCALES:
                total, small = total + max(small, 1) * SCALES[part], 0
            else:
                small += 1 if part == "one" else WORDS[part]
        yield Figure(match.group(), Fraction(total + small))


class Facts:
    """Which numbers agree with the facts; see `NumbersItem`."""

    def __init__(self, facts: Iterable[Figure], derived: str) -> None:
        base = list(dict.fromkeys((fact.value, fact.percent) for fact in facts))
        self._plain = {value for value, percent in base if not percent}
        self._percent = {value for value, percent in base if percent} | {100 * value for value in self._plain}
        if derived != "none":
            for first, second in permutations([value for value, percent in base if not percent], 2):
                self._plain |= {first + second, first - second}
                if derived == "all":
                    self._plain.add(first * second)
                    if second:
                        self._plain.add(first / second)
                        self._percent |= {100 * first / second, 100 * (first - second) / second}
            shares = [value for value, percent in base if percent]
            self._percent |= {a + b for a, b in permutations(shares, 2)} | {a - b for a, b in permutations(shares, 2)}
        if derived == "all":
            plain = [value for value, percent in base if not percent]
            if plain:
                self._plain |= {sum(plain, Fraction()), sum(plain, Fraction()) / len(plain)}
        self._rounded: dict[tuple[bool, int], set[Fraction]] = {}

    def hold(self, number: Figure) -> bool:
        """Whether it is a fact, or one rounded to the decimals that are written (two significant digits at least)."""
        pool = self._percent if number.percent else self._plain
        if number.value in pool:
            return True
        if number.significant < 2:
            return False
        key = (number.percent, min(number.decimals, 50))
        if key not in self._rounded:
            scale = 10 ** key[1]
            self._rounded[key] = {rounded for value in pool for rounded in _both_ways(value * scale, scale)}
        return number.value in self._rounded[key]


def _both_ways(scaled: Fraction, scale: int) -> tuple[Fraction, Fraction]:
    """Rounded half to even and half away from zero: people do either."""
    away = (abs(scaled) + Fraction(1, 2)).__floor__() * (1 if scaled >= 0 else -1)
    return Fraction(round(scaled), scale), Fraction(away, scale)
