"""Says whether a column of a table adds up: each cell is one number, read whole, in the one unit of the column."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from itertools import combinations, takewhile

from verifiers.checklists.characters import plain
from verifiers.checklists.fact_figures import figure
from verifiers.checklists.numbers import Decimals, Figure
from verifiers.checklists.prose import words
from verifiers.contract.text import escaped

SIGNS = frozenset("+-−–—()%‰°.,'’*~≈_/⁄^")
"""What a cell may have beside letters, digits and signs of a currency."""

LONGEST_ENDING = 3
"""`Kind` and `Kinder` are counted alike, `Euro` and `Eurocent` are not."""


def sum_fault(cells: Sequence[str], decimals: Decimals, column: str) -> str:
    """Why the last cell is not the sum of the others; empty where it is."""
    if len(cells) < 2:
        return f"{column!r} has nothing to add up"
    read = [number for cell in cells if (number := figure(cell, decimals)) is not None]
    if len(read) < len(cells) or not all(map(_is_plain, cells)):
        return f"a cell of {column!r} is not one number"
    if len({number.percent for number in read}) > 1:
        return f"{column!r} has shares beside numbers"
    rests = {(number.unit, _rest(cell, number)) for cell, number in zip(cells, read, strict=True)} - {("", ())}
    if not all(_is_one(*pair) for pair in combinations(rests, 2)):
        return f"{column!r} has numbers in more than one unit"
    total = sum((number.value for number in read[:-1]), start=type(read[0].value)())
    if total == read[-1].value:
        return ""
    return f"{column!r} adds up to {escaped(str(total))}, the last row says {escaped(read[-1].text)}"


def _is_plain(cell: str) -> bool:
    signs = (one for one in unicodedata.normalize("NFKC", cell) if not (one.isalnum() or one.isspace()))
    return all(one in SIGNS or unicodedata.category(one) in ("Sc", "Mn", "Mc") for one in signs)


def _rest(cell: str, number: Figure) -> tuple[str, ...]:
    """The words that stand beside the number."""
    beside = plain(cell).replace(plain(number.text).removeprefix("-"), " ")
    return tuple(words(re.sub(r"[\d.,'’]+", " ", beside)))


def _is_one(first: tuple[str, tuple[str, ...]], second: tuple[str, tuple[str, ...]]) -> bool:
    """Whether two cells have one unit, or the same words up to their endings."""
    (unit, rest), (other_unit, other_rest) = first, second
    if unit and other_unit:
        return unit == other_unit
    return len(rest) == len(other_rest) and all(map(_alike, rest, other_rest))


def _alike(one: str, other: str) -> bool:
    common = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))
    return common >= (min(len(one), len(other)) + 1) // 2 and max(len(one), len(other)) - common <= LONGEST_ENDING
