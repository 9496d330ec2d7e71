"""Sums of the first whole numbers, and the place of a number among the squares.

Levels raise the size of the numbers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from random import Random

from curriculum.family import Operation
from curriculum.phrased import PhrasedFamily, Question


@dataclass(frozen=True)
class SequencesLevel:
    """The largest last term of a sum, and the largest number whose root is asked for."""

    last: int
    square: int


LEVELS = (
    SequencesLevel(last=199, square=9_999),
    SequencesLevel(last=499, square=39_999),
    SequencesLevel(last=999, square=99_999),
)


def _last(level: SequencesLevel, rng: Random) -> tuple[int, ...]:
    return (rng.randint(5, level.last),)


def _square(level: SequencesLevel, rng: Random) -> tuple[int, ...]:
    return (rng.randint(10, level.square),)


SEQUENCES = PhrasedFamily(
    name="sequences",
    domain="arithmetic",
    version=1,
    null_answer="96",
    levels=LEVELS,
    questions=(
        Question(
            Operation("sum_to", 1, "print(sum(range({a}+1)))", ("print(sum({a}))", "print(tri({a}))")),
            ("sum of 1 to {a}?", "triangular number {a}?"),
            _last,
            lambda a: a * (a + 1) // 2,
        ),
        Question(
            Operation(
                "integer_root",
                1,
                "import math\nprint(math.isqrt({a}))",
                ("print(math.isqrt({a}))", "print(isqrt({a}))"),
            ),
            ("integer square root of {a}?", "largest n with n*n up to {a}?"),
            _square,
            math.isqrt,
        ),
    ),
)
