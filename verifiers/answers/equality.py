"""Whether two trees have the same value: proved equal, proved different, or open. Never "close enough".

Rational numbers are compared exactly. Otherwise: at fixed points, enclosures that do not touch prove a difference and
name the witness; equality needs a symbolic proof *and* a point at which both sides certainly have a value, because a
rewriting may quietly cancel what was never defined, as in 5 + 0/(sin(x)^2 + cos(x)^2 - 1).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction
from typing import Any

from verifiers.answers.grammar.errors import GrammarError
from verifiers.answers.grammar.nodes import Expression, Negation, Number, Sum, symbols
from verifiers.answers.grammar.rational import rational
from verifiers.answers.intervals import DIGITS, OpenError, apart, enclosure

COORDINATES = ("3/7", "-5/3", "17/11", "-1/13", "29/5", "-41/7", "1/97", "101/3", "-73/2")
"""Where free symbols are tried: both signs, small and large, no zero of anything that people write."""
POINTS = 6


class Truth(StrEnum):
    EQUAL = "equal"
    DIFFERENT = "different"
    OPEN = "open"


@dataclass(frozen=True)
class Finding:
    truth: Truth
    because: str
    witness: dict[str, str] = field(default_factory=dict)
    """For a difference of expressions with symbols: the point at which they differ."""


def points(names: frozenset[str]) -> Iterator[dict[str, Fraction]]:
    """Fixed, so that a verdict is the same every time; each symbol gets other coordinates."""
    if not names:
        yield {}
        return
    coordinates = itertools.cycle(map(Fraction, COORDINATES))
    ordered = sorted(names)
    for shift in range(POINTS):
        yield {name: next(coordinates) + shift * index for index, name in enumerate(ordered)}


def compare(first: Expression, second: Expression, *, prove: bool = True) -> Finding:
    """Decides whether two trees are equal wherever both have a value. Raises GrammarError where one never has one.

    Without `prove` SymPy is not asked, and what only it could settle stays open.
    """
    exact, other = rational(first), rational(second)
    if exact is not None and other is not None:
        if exact == other:
            return Finding(Truth.EQUAL, "equal as exact rational numbers")
        return Finding(Truth.DIFFERENT, "different rational numbers")
    names = symbols(first) | symbols(second)
    defined = False
    for point in points(names):
        told_apart, both_defined = _look(first, second, point)
        if told_apart:
            return Finding(Truth.DIFFERENT, "their values differ", {key: str(value) for key, value in point.items()})
        defined = defined or both_defined
    if not defined:
        return Finding(Truth.OPEN, "no point was found at which both certainly have a value")
    if not prove:
        return Finding(Truth.OPEN, "no proof was attempted")
    # SymPy takes 0.3 s to import and most comparisons never come this far.
    from verifiers.answers.symbolic import proves_equal

    proof = proves_equal(first, second)
    if proof is None:
        return Finding(Truth.OPEN, "neither equality nor a difference could be proved")
    return Finding(Truth.EQUAL, f"their difference is zero ({proof})")


def has_value(node: Expression) -> bool:
    """Whether a point is found at which the tree certainly has a value: without one, nothing is ever equal to it."""
    return rational(node) is not None or any(_look(node, node, point)[1] for point in points(symbols(node)))


def _look(first: Expression, second: Expression, point: Mapping[str, Fraction]) -> tuple[bool, bool]:
    """(certainly different here, both certainly defined here)."""
    defined = False
    for digits in DIGITS:
        held = enclosure(digits)
        try:
            values = held.value(first, point), held.value(second, point)
        except OpenError:
            continue
        except GrammarError:
            if not point:
                raise
            return False, False
        if apart(*values):
            return True, True
        defined = True
    return False, defined


def sign(node: Expression, *, prove: bool = True) -> int | None:
    """-1, 0 or 1 for a constant that is certainly real; None where that is open."""
    exact = rational(node)
    if exact is not None:
        return (exact > 0) - (exact < 0)
    for digits in DIGITS:
        try:
            found: Any = enclosure(digits).real(node)
        except OpenError:
            continue
        if found.a > 0:
            return 1
        if found.b < 0:
            return -1
    return 0 if compare(node, Number(Fraction(0)), prove=prove).truth is Truth.EQUAL else None


def difference(first: Expression, second: Expression) -> Expression:
    return Sum((first, Negation(second)))
