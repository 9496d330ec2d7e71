"""What expressions in one symbol give for whole numbers: residue classes, solutions of trigonometric equations.

Over the whole numbers, images of the form a + b k are classes of numbers modulo b; over the natural ones they are
progressions with a beginning. Two unions of classes are equal when their offsets agree modulo a common multiple of all
steps, which is exact arithmetic where the steps are rational multiples of one of them. What is not of that form is only
ever equal when the expressions are, written with the same symbol.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from verifiers.answers.equality import Finding, Truth
from verifiers.answers.grammar.nodes import (
    Expression,
    Negation,
    Number,
    Power,
    Product,
    Quotient,
    Sum,
    Symbol,
    substitute,
    symbols,
)
from verifiers.answers.grammar.rational import rational
from verifiers.answers.intervals import OpenError
from verifiers.answers.scalars import ZERO, Scalars
from verifiers.answers.values import Builder, Images, NumberSet, SetOperation, Value
from verifiers.answers.writing import written

MAX_CLASSES = 120
MAX_DENOMINATOR = 1_000
"""Of the ratio of two steps."""
PARAMETER = "#"


@dataclass(frozen=True)
class Line:
    """start + step * k."""

    start: Expression
    step: Expression


def as_images(value: Value) -> Images | None:
    """The value as images of whole numbers: of one symbol that has a name of its own; None where it is none.

    `{k in Z}` is all whole numbers, a union of images is one set of them.
    """
    match value:
        case Images(of, symbol, within, name):
            return Images(tuple(substitute(one, symbol, Symbol(PARAMETER)) for one in of), PARAMETER, within, name)
        case NumberSet("Z"):
            return Images((Symbol(PARAMETER),), PARAMETER, value)
        case Builder(name, Images() | SetOperation() | NumberSet("Z") as within, None):
            inside = as_images(within)
            return None if inside is None else Images(inside.of, PARAMETER, inside.within, name)
        case SetOperation("union", parts):
            found = [as_images(part) for part in parts]
            known = [part for part in found if part is not None]
            if not known or len(known) < len(found) or len({part.within for part in known}) > 1:
                return None
            return Images(tuple(of for part in known for of in part.of), PARAMETER, known[0].within)
        case _:
            return None


def compare_images(answer: Images, expected: Images, scalars: Scalars) -> Finding:
    """Raises GrammarError where a part has no value."""
    if None not in (answer.name, expected.name) and answer.name != expected.name:
        return Finding(Truth.DIFFERENT, "about another unknown")
    first, second = _lines(answer, scalars), _lines(expected, scalars)
    if first is None or second is None:
        return _alike(answer, expected, scalars)
    if answer.within == expected.within == NumberSet("Z"):
        return _classes(first, second, scalars)
    if NumberSet("Z") in (answer.within, expected.within):
        return Finding(Truth.OPEN, "one runs over all whole numbers, the other over the natural ones")
    return _progressions(_begun(first, answer), _begun(second, expected), scalars)


def _lines(of: Images, scalars: Scalars) -> list[Line] | None:
    """Each expression as start + step * k; None where one is proved to be none, or may be none."""
    found: list[Line] = []
    for one in of.of:
        if symbols(one) - {PARAMETER} or not _is_polynomial(one):
            return None
        start = substitute(one, PARAMETER, ZERO)
        after = substitute(one, PARAMETER, Number(Fraction(1)))
        step = _exact(Sum((after, Negation(start))))
        start = _exact(start)
        straight = Sum((start, Product((step, Symbol(PARAMETER)))))
        if scalars.compare(one, straight).truth is not Truth.EQUAL:
            return None
        if scalars.compare(step, ZERO).truth is not Truth.DIFFERENT:
            return None
        found.append(Line(start, step))
    return found


def _is_polynomial(node: Expression) -> bool:
    """Whether it has a value for every number: nothing is divided by the symbol, and no function takes it."""
    if PARAMETER not in symbols(node):
        return True
    match node:
        case Symbol():
            return True
        case Negation(of):
            return _is_polynomial(of)
        case Sum(parts) | Product(parts):
            return all(map(_is_polynomial, parts))
        case Quotient(above, below):
            return _is_polynomial(above) and PARAMETER not in symbols(below)
        case Power(base, Number(value)):
            return _is_polynomial(base) and value.denominator == 1 and value > 0
        case _:
            return False


def _exact(node: Expression) -> Expression:
    value = rational(node)
    return node if value is None else Number(value)


def _alike(answer: Images, expected: Images, scalars: Scalars) -> Finding:
    """The same expressions of the same numbers have the same images: never a difference."""
    if answer.within == expected.within and len(answer.of) == len(expected.of):
        pairs = zip(answer.of, expected.of, strict=True)
        if all(one == other or _same_polynomial(one, other, scalars) for one, other in pairs):
            return Finding(Truth.EQUAL, "images under the same expressions")
    return Finding(Truth.OPEN, "whether two sets of images are equal is open")


def _same_polynomial(one: Expression, other: Expression, scalars: Scalars) -> bool:
    whole = _is_polynomial(one) and _is_polynomial(other)
    return whole and scalars.compare(one, other).truth is Truth.EQUAL


# -- over all whole numbers


def _classes(first: Sequence[Line], second: Sequence[Line], scalars: Scalars) -> Finding:
    unit = second[0].step
    factors = [_factor(line.step, unit, scalars) for line in (*first, *second)]
    known = [abs(factor) for factor in factors if factor is not None]
    if len(known) < len(factors):
        return Finding(Truth.OPEN, "steps of which no multiple is common, or not certainly")
    period = Fraction(
        math.lcm(*(factor.numerator for factor in known)), math.gcd(*(factor.denominator for factor in known))
    )
    counts = [int(period / factor) for factor in known]
    if sum(counts) > MAX_CLASSES:
        return Finding(Truth.OPEN, f"more than {MAX_CLASSES} classes")
    whole = _exact(Product((Number(period), unit)))
    offsets = [
        _exact(Sum((line.start, Product((Number(Fraction(index)), line.step)))))
        for line, count in zip((*first, *second), counts, strict=True)
        for index in range(count)
    ]
    split = sum(counts[: len(first)])
    try:
        placed = [(offset, _turns(offset, whole, scalars)) for offset in offsets]
    except OpenError:
        return Finding(Truth.OPEN, "a class whose place is open")
    return _same_places(placed[:split], placed[split:], whole, scalars)


Placed = tuple[Expression, tuple[Fraction, Fraction]]
"""An offset, and bounds of how many whole periods it is."""


def _turns(offset: Expression, whole: Expression, scalars: Scalars) -> tuple[Fraction, Fraction]:
    """Raises OpenError where it is not certainly real."""
    turns = Quotient(offset, whole)
    value = rational(turns)
    return (value, value) if value is not None else scalars.enclosed(turns)


def _same_places(first: list[Placed], second: list[Placed], whole: Expression, scalars: Scalars) -> Finding:
    opened = False
    for wanted, given in ((second, first), (first, second)):
        for one in wanted:
            truths = [_congruent(one, other, whole, scalars) for other in given]
            if any(truths):
                continue
            if None not in truths:
                return Finding(
                    Truth.DIFFERENT, "a number belongs to one of the two sets only", {"number": written(one[0])}
                )
            opened = True
    if opened:
        return Finding(Truth.OPEN, "whether two classes are the same is open")
    return Finding(Truth.EQUAL, "the same classes of numbers")


def _congruent(one: Placed, other: Placed, whole: Expression, scalars: Scalars) -> bool | None:
    """Whether two offsets differ by whole periods; None where that is open."""
    low, high = one[1][0] - other[1][1], one[1][1] - other[1][0]
    turns = math.ceil(low)
    if turns > high:
        return False
    if low == high:
        return True
    if math.floor(high) > turns:
        return None
    moved = Sum((other[0], Product((Number(Fraction(turns)), whole))))
    truth = scalars.compare(one[0], moved).truth
    return None if truth is Truth.OPEN else truth is Truth.EQUAL


def _factor(step: Expression, unit: Expression, scalars: Scalars) -> Fraction | None:
    """The rational number that one step is of another; None where none is found and proved."""
    exact = rational(Quotient(step, unit))
    if exact is not None:
        return exact
    try:
        low, high = scalars.enclosed(Quotient(step, unit))
    except OpenError:
        return None
    guess = ((low + high) / 2).limit_denominator(MAX_DENOMINATOR)
    if guess == 0:
        return None
    proved = scalars.compare(step, Product((Number(guess), unit))).truth is Truth.EQUAL
    return guess if proved else None


# -- over the natural numbers


def _begun(lines: list[Line], of: Images) -> list[Line]:
    """With the first term as the start."""
    if of.within == NumberSet("N0"):
        return lines
    return [Line(_exact(Sum((line.start, line.step))), line.step) for line in lines]


def _progressions(first: list[Line], second: list[Line], scalars: Scalars) -> Finding:
    """One progression is another when both their beginnings and their steps are equal; of several, each its own."""

    def same(one: Line, other: Line) -> bool:
        pairs = ((one.start, other.start), (one.step, other.step))
        return all(scalars.compare(*pair).truth is Truth.EQUAL for pair in pairs)

    def apart(one: Line, other: Line) -> bool:
        pairs = ((one.start, other.start), (one.step, other.step))
        return any(scalars.compare(*pair).truth is Truth.DIFFERENT for pair in pairs)

    left = list(second)
    for line in first:
        found = next((other for other in left if same(line, other)), None)
        if found is None:
            single = len(first) == len(second) == 1
            if single and apart(line, second[0]):
                return Finding(Truth.DIFFERENT, "another beginning, or another step")
            return Finding(Truth.OPEN, "whether two sets of progressions are equal is open")
        left.remove(found)
    if left:
        return Finding(Truth.OPEN, "whether two sets of progressions are equal is open")
    return Finding(Truth.EQUAL, "the same progressions")
