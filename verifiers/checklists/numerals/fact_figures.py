"""Parses a fact or a cell: one number, perhaps with a unit, or the several of a date, a time, a range."""

from __future__ import annotations

import re
from dataclasses import replace

from verifiers.answers.grammar.numerals import Decimals
from verifiers.checklists.numerals.numbers import Figure, numbers_in


def figure(text: str, decimals: Decimals = "point") -> Figure | None:
    """Returns the only number in a table cell or fact, with its unit; None for none or several."""
    found = figures(text, decimals)
    return found[0] if len(found) == 1 else None


def figures(text: str, decimals: Decimals = "point") -> list[Figure]:
    """Returns all numbers in the text of a fact: `9:30`, `3–2` and `4 May 2024` have two."""
    found = numbers_in(text.strip("* "), decimals, cell=True, marks=mark_of(text))
    upper = [one for number in found for one in number.readings[0]]
    if re.fullmatch(r"\s*\d+\s?/\s?\d+(?:\s\D*)?", text) and len(upper) == 2 and upper[1].value:
        upper.append(replace(upper[1], text=text, value=upper[0].value / upper[1].value))
    return upper


def mark_of(fact: str) -> frozenset[str]:
    """Returns the letters right before the digits of a fact, such as `RM` of `RM450`; empty if there are none."""
    return frozenset(re.findall(r"^\W*([^\W\d_]+)[-\u2010\u2011]?(?=\d)", fact))
