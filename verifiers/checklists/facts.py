"""Which numbers a text has, and which of them agree with the facts; see `NumbersItem`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import accumulate, permutations

from verifiers.checklists.brackets import without_cited
from verifiers.checklists.document import Document
from verifiers.checklists.numbers import Figure, WrittenNumber, decimals_of, numbers_in

NUMERAL = re.compile(r"(?:\d+\.)*\d+[.)]\s|(?:\d+\.)+\d+\s|(?:\w+ )?\d{1,2}:\s")
"""Before the words of a heading."""
POINT = re.compile(r"(?:^|(?<=[:;,.!?]\s)|(?<=\sand\s)|(?<=\sor\s))\(\d{1,2}\)(?=\s\w)")
"""What numbers the points of a sentence: `(1) wheat and (2) barley`."""


def document_numbers(document: Document, known: Sequence[str]) -> Iterator[WrittenNumber]:
    """All numbers of a text but the keys that it cites and the numerals of its headings and points."""
    decimals = decimals_of(document.everything)
    for block in document.marked_blocks:
        if block.kind == "code":
            yield from (one for line in block.text.splitlines() for one in numbers_in(line, "point"))
            continue
        text = NUMERAL.sub("", block.text, count=1) if block.kind == "heading" else POINT.sub(" ", block.text)
        yield from numbers_in(without_cited(text, known), decimals)
        for row in block.rows:
            yield from (one for cell in row for one in numbers_in(without_cited(cell, known), decimals, cell=True))


def source_numbers(text: str) -> Iterator[Figure]:
    """All numbers of a source, however they may be read."""
    found = numbers_in(text, decimals_of(text))
    return (one for number in found for reading in number.readings for one in reading)


class Facts:
    """Which numbers agree with the facts; see `NumbersItem`."""

    def __init__(self, facts: Iterable[Figure], derived: str) -> None:
        facts = list(facts)
        base = list(dict.fromkeys((fact.value, fact.percent) for fact in facts))
        self._facts, self._derives = facts, derived != "none"
        self._plain = {value for value, percent in base if not percent}
        self._percent = {value for value, percent in base if percent} | {100 * value for value in self._plain}
        if derived != "none":
            for first, second in permutations([value for value, percent in base if not percent], 2):
                self._plain |= {first + second, first - second}
                if derived == "all":
                    self._plain |= {first * second, (first + second) / 2}
                    if second:
                        self._plain.add(first / second)
                        self._percent |= {100 * first / second, 100 * (first - second) / second}
            row = [fact.value for fact in facts if not fact.percent]
            for start in range(len(row)):
                self._plain.update(accumulate(row[start:]))
            shares = [value for value, percent in base if percent]
            self._percent |= {a + b for a, b in permutations(shares, 2)} | {a - b for a, b in permutations(shares, 2)}
        if derived == "all":
            plain = [value for value, percent in base if not percent]
            if plain:
                self._plain.add(sum(plain, Fraction()) / len(plain))
        self._rounded: dict[tuple[bool, int], set[Fraction]] = {}

    def agree(self, number: WrittenNumber) -> bool:
        """Whether one of its readings holds."""
        return any(
            all(self.hold(one) and not self._in_another_unit(one) for one in reading) for reading in number.readings
        )

    def _in_another_unit(self, number: Figure) -> bool:
        """Whether facts have this value, and each of them in another unit; what may be derived as well is in any."""
        scale = Fraction(10) ** max(-60, min(number.decimals, 50))
        units = {
            fact.unit
            for fact in (self._facts if number.unit and not self._derives else ())
            if fact.value == number.value
            or (number.significant > 1 and number.value in _both_ways(fact.value * scale, scale))
        }
        return bool(units) and not units & {"", number.unit}

    def hold(self, number: Figure) -> bool:
        """Whether it is a fact, or one rounded to the decimals that are written (two significant digits at least)."""
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


def _both_ways(scaled: Fraction, scale: Fraction) -> tuple[Fraction, Fraction]:
    """Rounded half to even and half away from zero: people do either."""
    away = (abs(scaled) + Fraction(1, 2)).__floor__() * (1 if scaled >= 0 else -1)
    return round(scaled) / scale, away / scale
