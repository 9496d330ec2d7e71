r"""Expands the dots of an arithmetic progression: `1, 2, \dots, 10` becomes its ten terms.

The terms before the dots give the step, which is 1 for a single term; the term after them must be reached. Refused if
the progression is ambiguous: `2, 4, \dots, 64` may go by doubling.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

from verifiers.answers.grammar.errors import GrammarError, TooLargeError
from verifiers.answers.grammar.lists import plain_numbers
from verifiers.answers.grammar.nodes import Negation, Number
from verifiers.answers.grammar.values import Scalar, Value

MAX_TERMS = 5_000
"""Maximum number of terms that dots expand to, in one text."""


def between(items: list[Value], last: Value) -> list[Value]:
    """Expands the dots of `1, 3, ..., 9`: returns the terms between `items` and `last`, and `last`. Raises
    GrammarError."""
    numbers = plain_numbers((*items, last))
    if numbers is None:
        raise GrammarError("dots between items that are not plain numbers")
    *known, end = numbers
    steps = {after - before for before, after in pairwise(known)} or {Fraction(1)}
    if len(steps) != 1:
        raise GrammarError("dots after numbers with different steps")
    (step,) = steps
    if step == 0 or (end - known[-1]) / step < 1 or ((end - known[-1]) / step).denominator != 1:
        raise GrammarError("dots that do not lead to the number after them")
    count = int((end - known[-1]) / step)
    if count > MAX_TERMS:
        raise TooLargeError(f"dots for more than {MAX_TERMS} numbers")
    if len(known) == 2 and step != 1 and _multiplies(known, end):
        raise GrammarError("dots that may continue by adding or by multiplying: write a third number")
    return [Scalar(_written(known[-1] + step * index)) for index in range(1, count + 1)]


def _written(value: Fraction) -> Number | Negation:
    return Negation(Number(-value)) if value < 0 else Number(value)


def _multiplies(known: list[Fraction], end: Fraction) -> bool:
    """True if a geometric progression from the two numbers also reaches the last one."""
    first, term = known
    if first == 0 or abs(term) <= abs(first):
        return False
    factor = term / first
    while abs(term) < abs(end):
        term *= factor
    return term == end
