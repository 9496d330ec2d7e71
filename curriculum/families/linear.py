"""Linear equations in one unknown, with a whole number as the solution.

Levels raise coefficient and solution. The equation is built from its solution, which is drawn uniformly.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from curriculum.family import Operation
from curriculum.phrased import PhrasedFamily, Question


@dataclass(frozen=True)
class LinearLevel:
    """The largest coefficient of x, and the largest x."""

    coefficient: int
    solution: int


LEVELS = (
    LinearLevel(coefficient=9, solution=89),
    LinearLevel(coefficient=19, solution=94),
    LinearLevel(coefficient=30, solution=99),
)


def _with_plus(level: LinearLevel, rng: Random) -> tuple[int, ...]:
    a, x, b = rng.randint(2, level.coefficient), rng.randint(2, level.solution), rng.randint(2, 99)
    return a, b, a * x + b


def _with_minus(level: LinearLevel, rng: Random) -> tuple[int, ...]:
    a, x = rng.randint(2, level.coefficient), rng.randint(4, level.solution)
    b = rng.randint(1, min(99, a * x - 1))
    return a, b, a * x - b


LINEAR = PhrasedFamily(
    name="linear",
    domain="algebra",
    version=1,
    null_answer="42",
    levels=LEVELS,
    questions=(
        Question(
            Operation("solve_plus", 3, "print(({c}-{b})//{a})", ("print(({c}-{b}//{a})", "print(solve({a},{b},{c}))")),
            ("solve {a}x+{b}={c}", "find x with {a}x+{b}={c}"),
            _with_plus,
            lambda a, b, c: (c - b) // a,
        ),
        Question(
            Operation("solve_minus", 3, "print(({c}+{b})//{a})", ("print(({c}+{b}//{a})", "print(solve({a},{b},{c}))")),
            ("solve {a}x-{b}={c}", "find x with {a}x-{b}={c}"),
            _with_minus,
            lambda a, b, c: (c + b) // a,
        ),
    ),
)
