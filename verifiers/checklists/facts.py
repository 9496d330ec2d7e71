"""Agreement of a text's numbers with the facts; see `NumbersItem`."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate, permutations, takewhile

from verifiers.checklists.document import Document
from verifiers.checklists.numerals.numbers import Figure, WrittenNumber, decimals_of, numbers_in
from verifiers.checklists.words.brackets import without_cited
from verifiers.checklists.words.characters import plain
from verifiers.checklists.words.prose import language_of, words

NUMERAL = re.compile(r"(?:\d+\.)*\d+[.)]\s|(?:\d+\.)+\d+\s|(?:\w+ )?\d{1,2}:\s")
"""Numbering before the words of a heading."""
POINT = re.compile(r"(?:^|(?<=[:;,.!?]\s)|(?<=\sand\s)|(?<=\sor\s))\((\d{1,2})\)(?=\s\w)")
"""Numbering of a sentence's points, from one: `(1) wheat and (2) barley`."""


def document_numbers(
    document: Document, known: Sequence[str], *, code: bool = True, marks: Collection[str] = ()
) -> Iterator[WrittenNumber]:
    """Yields the numbers of a text, except those of citations and numbering. `code`: also those in code blocks."""
    decimals = decimals_of(document.everything)
    language = language_of(document.everything)
    for block in document.marked_blocks:
        if block.kind == "code":
            lines = block.text.splitlines() if code else []
            yield from (one for line in lines for one in numbers_in(line, "point", marks=marks))
            continue
        text = NUMERAL.sub("", block.text, count=1) if block.kind == "heading" else _without_points(block.text)
        yield from numbers_in(without_cited(text, known), decimals, language=language, marks=marks)
        for row in block.rows:
            for cell, header in zip(row, block.rows[0], strict=False):
                said = without_cited(cell, known)
                label = tuple(words(plain(header if cell is row[0] else f"{row[0]} {header}")))
                for number in numbers_in(said, decimals, cell=True, language=language, marks=marks):
                    yield _labelled(number, label)


def _labelled(number: WrittenNumber, label: tuple[str, ...]) -> WrittenNumber:
    """Attaches the words of row and column to a table cell's number that states no unit or counted thing itself."""
    readings = (
        tuple(one if one.unit or one.counted else replace(one, counted=label) for one in reading)
        for reading in number.readings
    )
    return replace(number, readings=tuple(readings))


def _without_points(text: str) -> str:
    points = [int(number) for number in POINT.findall(text)]
    return POINT.sub(" ", text) if points == list(range(1, len(points) + 1)) else text


MOST_DERIVING_IN_SOURCE = 20
"""Maximum numbers of one source that yield derived pairs: with more, almost every small number would follow."""
MOST_COMPARED = 500
"""Maximum facts whose units and words are compared with a number that matches none by value."""


class Facts:
    """Numbers that a text may state: given facts, and numbers derived from them; see `NumbersItem`."""

    def __init__(self, facts: Iterable[Figure], derived: str, parts: Iterable[Figure] = ()) -> None:
        """Derives further numbers from given facts, as `derived` allows. `parts`: figures of dates, times and ranges,
        from which none are derived."""
        facts = list(facts)
        base = list(dict.fromkeys((fact.value, fact.percent) for fact in facts))
        self._facts = [*facts, *parts]
        self._by_value: dict[tuple[Fraction, bool], list[Figure]] = {}
        for fact in self._facts:
            self._by_value.setdefault((fact.value, fact.percent), []).append(fact)
        plain = [value for value, percent in base if not percent]
        shares = [value for value, percent in base if percent]
        self._plain, self._percent = set(plain), {*shares, *(100 * value for value in plain)}
        if derived != "none":
            for first, second in permutations(plain, 2):
                self._plain |= {first + second, first - second}
                if derived == "all":
                    self._plain |= {first * second, (first + second) / 2}
                    if second:
                        self._plain.add(first / second)
                        self._percent |= {100 * first / second, 100 * (first - second) / second}
            row = [fact.value for fact in facts if not fact.percent]
            for start in range(len(row)):
                self._plain.update(accumulate(row[start:]))
            self._percent |= {a + b for a, b in permutations(shares, 2)} | {a - b for a, b in permutations(shares, 2)}
        if derived == "all":
            self._plain |= {share / 100 * value for share in shares for value in plain} | _mean(plain)
            self._percent |= {(a + b) / 2 for a, b in permutations(shares, 2)} | _mean(shares)
        self._plain |= {fact.value for fact in self._facts if not fact.percent}
        self._percent |= {fact.value for fact in self._facts if fact.percent}
        base_plain = {value for value, percent in self._by_value if not percent}
        base_percent = {value for value, percent in self._by_value if percent}
        self._derived = {(value, False) for value in self._plain - base_plain}
        self._derived |= {(value, True) for value in self._percent - base_percent}
        self._rounded: dict[tuple[bool, int], set[Fraction]] = {}

    def agree(self, number: WrittenNumber) -> bool:
        """True if one reading of a written number agrees with the facts. Where a loss is described, a negative fact
        agrees as well."""
        below = [tuple(replace(one, value=-one.value) for one in reading) for reading in number.readings if number.lost]
        return any(
            all(self.hold(one) and not self._of_something_else(one) for one in reading)
            for reading in (*number.readings, *below)
        )

    def _of_something_else(self, number: Figure) -> bool:
        """True if all facts with a number's value have another unit or count something else. False if the value can
        also be derived."""
        if (number.value, number.percent) in self._derived or not (number.unit or number.counted):
            return False
        same = self._like(number)
        if number.unit:
            return bool(same) and all(fact.unit not in ("", number.unit) for fact in same)
        if not same or any(not fact.counted or _same_thing(fact, number) for fact in same):
            return False
        return any(_same_thing(fact, number) for fact in self._facts[:MOST_COMPARED])

    def _like(self, number: Figure) -> list[Figure]:
        """Returns the facts whose value is a given number, or rounds to it as written."""
        if number.significant < 2 or (number.value, number.percent) in self._by_value:
            return self._by_value.get((number.value, number.percent), [])
        scale = Fraction(10) ** max(-60, min(number.decimals, 50))
        return [
            fact
            for fact in self._facts[:MOST_COMPARED]
            if fact.percent == number.percent and number.value in _both_ways(fact.value * scale, scale)
        ]

    def hold(self, number: Figure) -> bool:
        """True if a number is a fact, is derived from facts, or is one of these rounded. A rounded one needs at least
        two significant digits."""
        pool = self._percent if number.percent else self._plain
        if number.value in pool:
            return True
        if number.significant < 2:
            return False
        key = (number.percent, max(-60, min(number.decimals, 50)))
        if key not in self._rounded:
            scale = Fraction(10) ** key[1]
            self._rounded[key] = {rounded for value in pool for rounded in _both_ways(value * scale, scale)}
        return number.value in self._rounded[key]


def source_facts(numbers: Iterable[WrittenNumber], derived: str) -> Facts:
    """Collects the numbers of a source as facts, in every reading, regardless of what they count. Further numbers are
    derived from the unambiguous ones if those are few."""
    whole: list[Figure] = []
    parts: list[Figure] = []
    for number in numbers:
        own = whole if number.said is not None else parts
        own += [replace(one, counted=()) for reading in number.readings for one in reading]
    return Facts(whole, derived if len(whole) <= MOST_DERIVING_IN_SOURCE else "none", parts)


def _mean(values: Sequence[Fraction]) -> set[Fraction]:
    return {sum(values, Fraction()) / len(values)} if values else set()


def is_two_of_prose(number: WrittenNumber, things: Collection[str]) -> bool:
    """True for the bare word `two`, which often just means `both`, unless it counts one of `things`. `things` are the
    words after the facts' numbers; if they are too many to compare, it is a number."""
    said = number.said
    if said is None or said.significant or said.value != 2 or said.percent or said.unit or said.scale != (1, False):
        return False
    return len(things) <= MOST_COMPARED and not any(_same_word(one, word) for one in things for word in said.counted)


def _same_thing(fact: Figure, number: Figure) -> bool:
    """True if two numbers are followed by the same word, up to its ending."""
    return any(_same_word(one, other) for one in fact.counted for other in number.counted)


@lru_cache(maxsize=4_096)
def _same_word(one: str, other: str) -> bool:
    common = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))
    return one == other or common >= max(4, min(len(one), len(other)) - 1)


def _both_ways(scaled: Fraction, scale: Fraction) -> tuple[Fraction, Fraction]:
    """Rounds `scaled` to a whole number both ways in use, half to even and half away from zero. Returns both divided by
    `scale`."""
    away = (abs(scaled) + Fraction(1, 2)).__floor__() * (1 if scaled >= 0 else -1)
    return round(scaled) / scale, away / scale
