"""Asks for sums of the first whole numbers, and for the place of a number among the squares.

Levels raise the size of the numbers.
"""

from __future__ import annotations

import math

from curriculum.families.phrased import Operation, PhrasedTaskset, Question

SEQUENCES = PhrasedTaskset(
    name="sequences",
    version=2,
    null_answers=("96",),
    levels=({"last": 699, "square": 9_999}, {"last": 1_499, "square": 39_999}, {"last": 4_999, "square": 99_999}),
    questions=(
        Question(
            Operation("sum_to", "print(sum(range({a}+1)))", ("print(sum({a}))", "print(tri({a}))")),
            ("sum of 1 to {a}?", "triangular number {a}?"),
            lambda level, rng: (rng.randint(5, level["last"]),),
            lambda a: a * (a + 1) // 2,
        ),
        Question(
            Operation(
                "integer_root", "import math\nprint(math.isqrt({a}))", ("print(math.isqrt({a}))", "print(isqrt({a}))")
            ),
            ("integer square root of {a}?", "largest n with n*n up to {a}?"),
            lambda level, rng: (rng.randint(10, level["square"]),),
            math.isqrt,
        ),
    ),
)
