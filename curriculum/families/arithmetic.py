"""Asks for the four operations of arithmetic in words, with quotient and remainder apart.

Levels raise the number of digits. Differences are positive. Remainders are small numbers; as they are a fifth of the
items and their divisors have two digits, no constant answer is right in 2 %.
"""

from __future__ import annotations

from random import Random

from curriculum.families.phrased import Level, Operation, PhrasedTaskset, Question


def _difference(level: Level, rng: Random) -> tuple[int, ...]:
    larger = rng.randint(level["term"] // 10 + 2, level["term"])
    return larger, rng.randint(2, larger - 1)


ARITHMETIC = PhrasedTaskset(
    name="arithmetic",
    version=1,
    null_answers=("22",),
    levels=(
        {"term": 199, "factor": 29, "dividend": 999, "divisor": 19},
        {"term": 999, "factor": 99, "dividend": 4999, "divisor": 49},
        {"term": 9999, "factor": 999, "dividend": 9999, "divisor": 99},
    ),
    questions=(
        Question(
            Operation("add", "print({a}+{b})", ("print({a}+{b}", "print(add({a},{b}))")),
            ("{a} plus {b}?", "sum of {a} and {b}?", "{a} and {b} together?"),
            lambda level, rng: (rng.randint(2, level["term"]), rng.randint(2, level["term"])),
            lambda a, b: a + b,
        ),
        Question(
            Operation("subtract", "print({a}-{b})", ("print({a}-{b}", "print(sub({a},{b}))")),
            ("{a} minus {b}?", "difference of {a} and {b}?", "{a} less {b}?"),
            _difference,
            lambda a, b: a - b,
        ),
        Question(
            Operation("multiply", "print({a}*{b})", ("print({a}*{b}", "print(mul({a},{b}))")),
            ("{a} times {b}?", "product of {a} and {b}?", "area of {a} by {b}?"),
            lambda level, rng: (rng.randint(2, level["factor"]), rng.randint(2, level["factor"])),
            lambda a, b: a * b,
        ),
        Question(
            Operation("quotient", "print({a}//{b})", ("print({a}//{b}", "print(div({a},{b}))")),
            ("whole quotient of {a} by {b}?", "how often does {b} fit into {a}?", "{a} over {b} rounded down?"),
            lambda level, rng: (rng.randint(100, level["dividend"]), rng.randint(2, level["divisor"])),
            lambda a, b: a // b,
        ),
        Question(
            Operation("remainder", "print({a}%{b})", ("print({a}%{b}", "print(mod({a},{b}))")),
            ("{a} modulo {b}?", "remainder of {a} by {b}?", "what is left of {a} after sharing by {b}?"),
            lambda level, rng: (rng.randint(100, level["dividend"]), rng.randint(23, 99)),
            lambda a, b: a % b,
        ),
    ),
)
