"""The four operations of arithmetic, asked in words, with quotient and remainder apart.

Levels raise the number of digits. Differences are positive. Remainders are small numbers; as they are a fifth of the
items and their divisors have two digits, no constant answer is right in 2 %.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from curriculum.family import Operation
from curriculum.phrased import PhrasedFamily, Question


@dataclass(frozen=True)
class ArithmeticLevel:
    """The largest number of each kind that is drawn."""

    term: int
    factor: int
    dividend: int
    divisor: int


LEVELS = (
    ArithmeticLevel(term=199, factor=29, dividend=999, divisor=19),
    ArithmeticLevel(term=999, factor=99, dividend=4999, divisor=49),
    ArithmeticLevel(term=9999, factor=999, dividend=9999, divisor=99),
)


def _terms(level: ArithmeticLevel, rng: Random) -> tuple[int, ...]:
    return rng.randint(2, level.term), rng.randint(2, level.term)


def _difference(level: ArithmeticLevel, rng: Random) -> tuple[int, ...]:
    larger = rng.randint(level.term // 10 + 2, level.term)
    return larger, rng.randint(2, larger - 1)


def _factors(level: ArithmeticLevel, rng: Random) -> tuple[int, ...]:
    return rng.randint(2, level.factor), rng.randint(2, level.factor)


def _sharing(level: ArithmeticLevel, rng: Random) -> tuple[int, ...]:
    return rng.randint(100, level.dividend), rng.randint(2, level.divisor)


def _leaving(level: ArithmeticLevel, rng: Random) -> tuple[int, ...]:
    return rng.randint(100, level.dividend), rng.randint(23, 99)


ARITHMETIC = PhrasedFamily(
    name="arithmetic",
    domain="arithmetic",
    version=1,
    null_answer="22",
    levels=LEVELS,
    questions=(
        Question(
            Operation("add", 2, "print({a}+{b})", ("print({a}+{b}", "print(add({a},{b}))")),
            ("{a} plus {b}?", "sum of {a} and {b}?", "{a} and {b} together?"),
            _terms,
            lambda a, b: a + b,
        ),
        Question(
            Operation("subtract", 2, "print({a}-{b})", ("print({a}-{b}", "print(sub({a},{b}))")),
            ("{a} minus {b}?", "difference of {a} and {b}?", "{a} less {b}?"),
            _difference,
            lambda a, b: a - b,
        ),
        Question(
            Operation("multiply", 2, "print({a}*{b})", ("print({a}*{b}", "print(mul({a},{b}))")),
            ("{a} times {b}?", "product of {a} and {b}?", "area of {a} by {b}?"),
            _factors,
            lambda a, b: a * b,
        ),
        Question(
            Operation("quotient", 2, "print({a}//{b})", ("print({a}//{b}", "print(div({a},{b}))")),
            ("whole quotient of {a} by {b}?", "how often does {b} fit into {a}?", "{a} over {b} rounded down?"),
            _sharing,
            lambda a, b: a // b,
        ),
        Question(
            Operation("remainder", 2, "print({a}%{b})", ("print({a}%{b}", "print(mod({a},{b}))")),
            ("{a} modulo {b}?", "remainder of {a} by {b}?", "what is left of {a} after sharing by {b}?"),
            _leaving,
            lambda a, b: a % b,
        ),
    ),
)
