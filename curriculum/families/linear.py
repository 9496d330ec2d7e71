"""Asks for the whole number that solves a linear equation in one unknown.

Levels raise coefficient and solution. The equation is built from its solution, which is drawn uniformly.
"""

from __future__ import annotations

from random import Random

from curriculum.families.phrased import Level, Operation, PhrasedTaskset, Question


def _with_plus(level: Level, rng: Random) -> tuple[int, ...]:
    a, x, b = rng.randint(2, level["coefficient"]), rng.randint(2, level["solution"]), rng.randint(2, 99)
    return a, b, a * x + b


def _with_minus(level: Level, rng: Random) -> tuple[int, ...]:
    a, x = rng.randint(2, level["coefficient"]), rng.randint(4, level["solution"])
    b = rng.randint(1, min(99, a * x - 1))
    return a, b, a * x - b


LINEAR = PhrasedTaskset(
    name="linear",
    version=1,
    null_answers=("42",),
    levels=(
        {"coefficient": 9, "solution": 89},
        {"coefficient": 19, "solution": 94},
        {"coefficient": 30, "solution": 99},
    ),
    questions=(
        Question(
            Operation("solve_plus", "print(({c}-{b})//{a})", ("print(({c}-{b}//{a})", "print(solve({a},{b},{c}))")),
            ("solve {a}x+{b}={c}", "find x with {a}x+{b}={c}"),
            _with_plus,
            lambda a, b, c: (c - b) // a,
        ),
        Question(
            Operation("solve_minus", "print(({c}+{b})//{a})", ("print(({c}+{b}//{a})", "print(solve({a},{b},{c}))")),
            ("solve {a}x-{b}={c}", "find x with {a}x-{b}={c}"),
            _with_minus,
            lambda a, b, c: (c + b) // a,
        ),
    ),
)
