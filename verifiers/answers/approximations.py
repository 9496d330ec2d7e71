"""Checks `5/36 \\approx 0.139`: the decimal behind an exact value has to agree with it.

The exact value is the answer; the decimal adds nothing, and takes the answer back where it disagrees. It agrees when it
is the value rounded to its last place, or cut off there. Powers of ten count: 1.5 x 10^8 has its last place at 10^7. A
decimal alone approximates nothing.
"""

from __future__ import annotations

from fractions import Fraction

from verifiers.answers.grammar.errors import GrammarError
from verifiers.answers.grammar.nodes import Expression, Negation, Number, Power, Product, Sum
from verifiers.answers.grammar.values import Approximated, Value
from verifiers.answers.scalars import Scalars

MAX_POWER = 400


def without_approximation(value: Value, scalars: Scalars) -> Value:
    """Returns the exact value; anything else as it is. Raises GrammarError for a decimal that may not agree."""
    if not isinstance(value, Approximated):
        return value
    near, place = _last_place(value.near)
    above, below = (_side(value.exact, near + side * place / 2, scalars) for side in (1, -1))
    rounded = above in (0, -1) and below in (0, 1)
    outwards = 1 if near >= 0 else -1
    beyond = _side(value.exact, near + outwards * place, scalars)
    cut_off = _side(value.exact, near, scalars) in (0, outwards) and beyond == -outwards
    if not (rounded or cut_off):
        raise GrammarError("an approximation that does not agree with the value before it")
    return value.of


def _side(exact: Expression, bound: Fraction, scalars: Scalars) -> int | None:
    """Returns -1 below the bound, 1 above, 0 on it; None where that is open."""
    return scalars.sign(Sum((exact, Number(-bound))))


def _last_place(node: Expression) -> tuple[Fraction, Fraction]:
    """Returns the value of a decimal, and of one unit of its last place. Raises GrammarError for what is no decimal."""
    match node:
        case Negation(of):
            near, place = _last_place(of)
            return -near, place
        case Number(value, written):
            return value, _place(value, written)
        case Product((Number(value, written), Power(Number(ten), exponent))) if ten == 10:
            power = _whole(exponent)
            return value * Fraction(10) ** power, _place(value, written) * Fraction(10) ** power
        case _:
            raise GrammarError("an approximation that is no decimal")


def _place(value: Fraction, written: str) -> Fraction:
    if not written and value.denominator == 1:
        return Fraction(1)
    whole, point, digits = written.partition(".")
    if not (whole + digits).isdigit() or not point:
        raise GrammarError("an approximation that is no decimal")
    return Fraction(1, 10 ** len(digits))


def _whole(node: Expression) -> int:
    match node:
        case Number(value) if value.denominator == 1 and value <= MAX_POWER:
            return int(value)
        case Negation(Number(value)) if value.denominator == 1 and value <= MAX_POWER:
            return -int(value)
        case _:
            raise GrammarError("an approximation that is no decimal")
