"""Compares the values of expressions over whole numbers: residue classes, trigonometric solutions.

Over the integers, images of the form a + b k are residue classes modulo b; over the natural numbers they are
progressions. Two unions of classes are equal if their offsets agree modulo a common multiple of all steps, which is
exact arithmetic if the steps are rational multiples of one of them. Other images are equal only if their expressions
are, written with the same symbol.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from verifiers.answers.algebra.equality import EqualityFinding, Truth, decided, different, equal, undecided
from verifiers.answers.algebra.intervals import OpenError
from verifiers.answers.algebra.scalars import Scalars
from verifiers.answers.format import written
from verifiers.answers.grammar import nodes as n
from verifiers.answers.grammar.nodes import ONE, ZERO, minus, number, substitute, symbols
from verifiers.answers.grammar.rational import folded, rational
from verifiers.answers.grammar.values import Builder, Images, NumberSet, SetOperation, Value
from verifiers.answers.matching import matched

MAX_CLASSES = 120
MAX_DENOMINATOR = 1_000
"""Maximum denominator of the ratio of two steps."""
PARAMETER = "#"


@dataclass(frozen=True)
class ResidueLine:
    """Arithmetic progression: start + step * k for whole numbers k."""

    start: n.Expression
    step: n.Expression


def as_images(value: Value) -> Images | None:
    """Converts a value to a set of expressions over whole numbers, such as {2k + 1 : k in Z}. The symbol k gets a fixed
    name. Returns None if the value is no such set. `{k in Z}` is all whole numbers; a union of such sets is one set."""
    match value:
        case Images(of, symbol, within, name):
            return Images(tuple(substitute(one, {symbol: n.Symbol(PARAMETER)}) for one in of), PARAMETER, within, name)
        case NumberSet("Z"):
            return Images((n.Symbol(PARAMETER),), PARAMETER, value)
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


def compare_images(answer: Images, expected: Images, scalars: Scalars) -> EqualityFinding:
    """Compares two sets of values over whole numbers, such as {2k + 1 : k in Z}. Raises GrammarError if a part has no
    value."""
    if None not in (answer.name, expected.name) and answer.name != expected.name:
        return different("about a different unknown")
    first, second = _lines(answer, scalars), _lines(expected, scalars)
    if first is None or second is None:
        return _alike(answer, expected, scalars)
    if answer.within == expected.within == NumberSet("Z"):
        return _classes(first, second, scalars)
    if NumberSet("Z") in (answer.within, expected.within):
        return undecided("one runs over all whole numbers, the other over the natural ones")
    return _progressions(_begun(first, answer), _begun(second, expected), scalars)


def _lines(of: Images, scalars: Scalars) -> list[ResidueLine] | None:
    """Converts each expression of a set {2k + 1 : k in Z} to start + step * k. Returns None unless all are proved
    linear."""
    found: list[ResidueLine] = []
    for one in of.of:
        if symbols(one) - {PARAMETER} or not _is_polynomial(one):
            return None
        start = substitute(one, {PARAMETER: ZERO})
        step = folded(minus(substitute(one, {PARAMETER: ONE}), start))
        start = folded(start)
        straight = n.Sum((start, n.Product((step, n.Symbol(PARAMETER)))))
        is_line = scalars.compare(one, straight).truth is Truth.EQUAL
        if not is_line or scalars.compare(step, ZERO).truth is not Truth.DIFFERENT:
            return None
        found.append(ResidueLine(start, step))
    return found


def _is_polynomial(node: n.Expression) -> bool:
    """True if an expression is polynomial in the running symbol k, and so has a value at every k."""
    if PARAMETER not in symbols(node):
        return True
    match node:
        case n.Symbol():
            return True
        case n.Negation(of):
            return _is_polynomial(of)
        case n.Sum(parts) | n.Product(parts):
            return all(map(_is_polynomial, parts))
        case n.Quotient(above, below):
            return _is_polynomial(above) and PARAMETER not in symbols(below)
        case n.Power(base, n.Number(value)):
            return _is_polynomial(base) and value.denominator == 1 and value > 0
        case _:
            return False


def _alike(answer: Images, expected: Images, scalars: Scalars) -> EqualityFinding:
    """Compares two sets such as {k^2 : k in Z} expression by expression. Finds them equal or undecided, never
    different."""
    if answer.within == expected.within and len(answer.of) == len(expected.of):
        pairs = zip(answer.of, expected.of, strict=True)
        if all(one == other or _is_same_polynomial(one, other, scalars) for one, other in pairs):
            return equal("images under the same expressions")
    return undecided("equality of two sets of images is undecided")


def _is_same_polynomial(one: n.Expression, other: n.Expression, scalars: Scalars) -> bool:
    return _is_polynomial(one) and _is_polynomial(other) and scalars.compare(one, other).truth is Truth.EQUAL


# -- over all whole numbers


def _classes(first: Sequence[ResidueLine], second: Sequence[ResidueLine], scalars: Scalars) -> EqualityFinding:
    unit = second[0].step
    factors = [_factor(line.step, unit, scalars) for line in (*first, *second)]
    known = [abs(factor) for factor in factors if factor is not None]
    if len(known) < len(factors):
        return undecided("the steps have no certain common multiple")
    period = Fraction(
        math.lcm(*(factor.numerator for factor in known)), math.gcd(*(factor.denominator for factor in known))
    )
    counts = [int(period / factor) for factor in known]
    if sum(counts) > MAX_CLASSES:
        return undecided(f"more than {MAX_CLASSES} classes")
    whole = folded(n.Product((n.Number(period), unit)))
    offsets = [
        folded(n.Sum((line.start, n.Product((number(index), line.step)))))
        for line, count in zip((*first, *second), counts, strict=True)
        for index in range(count)
    ]
    split = sum(counts[: len(first)])
    try:
        placed = [(offset, _turns(offset, whole, scalars)) for offset in offsets]
    except OpenError:
        return undecided("the position of a class is undecided")
    return _same_places(placed[:split], placed[split:], whole, scalars)


Placed = tuple[n.Expression, tuple[Fraction, Fraction]]
"""An offset, and bounds of its quotient by the period."""


def _turns(offset: n.Expression, whole: n.Expression, scalars: Scalars) -> tuple[Fraction, Fraction]:
    """Returns a lower and an upper bound of `offset / whole`, the offset in periods. Raises OpenError if it is not
    certainly real."""
    turns = n.Quotient(offset, whole)
    value = rational(turns)
    return (value, value) if value is not None else scalars.enclosed(turns)


def _same_places(first: list[Placed], second: list[Placed], whole: n.Expression, scalars: Scalars) -> EqualityFinding:
    opened = False
    for wanted, given in ((second, first), (first, second)):
        for one in wanted:
            truths = [_congruent(one, other, whole, scalars) for other in given]
            if any(truths):
                continue
            if None not in truths:
                return different("a number belongs to one of the two sets only", {"number": written(one[0])})
            opened = True
    if opened:
        return undecided("equality of two classes is undecided")
    return equal("the same classes of numbers")


def _congruent(one: Placed, other: Placed, whole: n.Expression, scalars: Scalars) -> bool | None:
    """True if two offsets differ by a whole number of periods of length `whole`; None if undecided."""
    low, high = one[1][0] - other[1][1], one[1][1] - other[1][0]
    turns = math.ceil(low)
    if turns > high:
        return False
    if low == high:
        return True
    if math.floor(high) > turns:
        return None
    moved = n.Sum((other[0], n.Product((number(turns), whole))))
    truth = scalars.compare(one[0], moved).truth
    return None if truth is Truth.OPEN else truth is Truth.EQUAL


def _factor(step: n.Expression, unit: n.Expression, scalars: Scalars) -> Fraction | None:
    """Returns the ratio of two steps if it is proved rational, else None."""
    exact = rational(n.Quotient(step, unit))
    if exact is not None:
        return exact
    try:
        low, high = scalars.enclosed(n.Quotient(step, unit))
    except OpenError:
        return None
    guess = ((low + high) / 2).limit_denominator(MAX_DENOMINATOR)
    if guess == 0:
        return None
    proved = scalars.compare(step, n.Product((n.Number(guess), unit))).truth is Truth.EQUAL
    return guess if proved else None


# -- over the natural numbers


def _begun(lines: list[ResidueLine], of: Images) -> list[ResidueLine]:
    """Returns progressions whose `start` is the first term: shifted by one step if k begins at 1 rather than 0."""
    if of.within == NumberSet("N0"):
        return lines
    return [ResidueLine(folded(n.Sum((line.start, line.step))), line.step) for line in lines]


def _progressions(first: list[ResidueLine], second: list[ResidueLine], scalars: Scalars) -> EqualityFinding:
    """Compares arithmetic progressions by first term and step. Several are matched in any order; if that fails, it is
    undecided."""

    def same(one: ResidueLine, other: ResidueLine) -> EqualityFinding:
        pairs = ((one.start, other.start), (one.step, other.step))
        return decided([scalars.compare(*pair) for pair in pairs], "the same beginning and step")

    if len(first) == len(second) == 1 and same(first[0], second[0]).truth is Truth.DIFFERENT:
        return different("a different beginning or step")
    if matched(first, second, same, repeats=True).truth is Truth.EQUAL:
        return equal("the same progressions")
    return undecided("equality of two sets of progressions is undecided")
