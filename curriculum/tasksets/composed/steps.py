"""Steps of composed problems: what they take, what they give, and the sizes within which results stay.

Invariants: a step is a pure function of its input and the given generator. It returns a noun phrase, in which its input
is named, and the result; or None where it does not suit the input. Results are exact.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from random import Random
from typing import Any, NamedTuple

from curriculum.tasksets.exact_arithmetic import primes_between, written


class ValueKind(StrEnum):
    """Type of a step's input and result."""

    NUMBER = "number"
    """Positive whole number."""
    FRACTION = "fraction"
    """Positive Fraction that is not whole."""
    POLYNOMIAL = "polynomial"
    """Tuple of whole coefficients, constant first."""
    SET = "set"
    """Ascending tuple of non-negative whole numbers."""
    POINT = "point"
    """Pair of Fractions."""


@dataclass(frozen=True)
class Draw:
    """Source of a step's parameters."""

    rng: Random
    hand: bool
    """True for numbers that can be worked with by hand."""
    earlier: tuple[tuple[str, int], ...] = ()
    """Names and values of the numbers found so far, except the input."""

    def between(self, tools: tuple[int, int], hand: tuple[int, int]) -> int:
        return self.rng.randint(*(hand if self.hand else tools))

    def prime(self, tools: tuple[int, int], hand: tuple[int, int]) -> int:
        return self.rng.choice(primes_between(*(hand if self.hand else tools)))

    def modulus(self) -> int:
        """Draws a modulus that leaves many remainders."""
        return self.between((1_001, 9_999), (101, 400))


Made = tuple[str, Any] | None


class ProblemStep(NamedTuple):
    takes: ValueKind
    gives: ValueKind
    make: Callable[[Any, str, Draw], Made]
    huge: bool = False
    """True if following the words literally takes more than 10^9 operations."""


LEAST, MOST = {True: 6, False: 30}, {True: 600, False: 3_000_000}
"""Range of numbers between two steps, by hand and with tools."""
SPREAD = {True: 40, False: 100}
"""Smallest number, or denominator of a fraction, that may be an answer: smaller ones are guessed."""
COEFFICIENT, COORDINATE, ELEMENT = {True: 60, False: 5_000}, {True: 40, False: 3_000}, {True: 130, False: 5_000}
DENOMINATOR = {True: 60, False: 5_000}


def fits(kind: ValueKind, value: Any, hand: bool, last: bool) -> bool:
    """True if a result is neither degenerate nor too large to go on with; `last` if it is the answer."""
    match kind:
        case ValueKind.NUMBER:
            return bool((SPREAD if last else LEAST)[hand] <= value <= MOST[hand] * (100 if last else 1))
        case ValueKind.FRACTION:
            least, most = (SPREAD[hand], 9 * DENOMINATOR[hand]) if last else (2, DENOMINATOR[hand])
            return bool(value > 0 and value.denominator >= least and sum(value.as_integer_ratio()) <= most)
        case ValueKind.POLYNOMIAL:
            small = all(abs(one) <= COEFFICIENT[hand] for one in value)
            spread = not last or sum(map(abs, value)) >= SPREAD[hand]
            return (
                small
                and spread
                and 2 <= len(value) <= (4 if hand else 6)
                and bool(value[-1])
                and sum(map(bool, value)) > 1
            )
        case ValueKind.SET:
            return 3 <= len(value) <= (6 if hand else 14) and value[-1] <= ELEMENT[hand]
        case ValueKind.POINT:
            return any(value) and all(
                abs(one.numerator) <= COORDINATE[hand] and one.denominator <= (1 if hand else 200) for one in value
            )


def shown(kind: ValueKind, value: Any) -> str:
    """Returns a value in plain notation: `12`, `3/4`, `x^2 - 3x`, `{1, 4}`, `(2, -1/3)`."""
    match kind:
        case ValueKind.POLYNOMIAL:
            return written(value)
        case ValueKind.SET:
            return f"{{{', '.join(map(str, value))}}}"
        case ValueKind.POINT:
            return f"({value[0]}, {value[1]})"
    return str(value)


def whole(point: tuple[Fraction, Fraction]) -> tuple[int, int] | None:
    """Returns the coordinates of a point as whole numbers; None if they are not."""
    x, y = point
    return (int(x), int(y)) if x.denominator == y.denominator == 1 else None
