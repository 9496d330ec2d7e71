"""Asks for common divisors, common multiples and the sum of all divisors.

Levels raise the size of the numbers. A common factor is planted, so that 1 is almost never a greatest common divisor;
divisors are summed rather than counted, because a third of all numbers below a thousand have exactly four.
"""

from __future__ import annotations

import math
from random import Random

from curriculum.families.phrased import Level, Operation, PhrasedTaskset, Question


def _with_common_factor(level: Level, rng: Random) -> tuple[int, ...]:
    common = rng.randint(2, level["number"] // 3)
    first, second = rng.sample(range(1, level["number"] // common + 1), 2)
    return common * first, common * second


def _two_numbers(level: Level, rng: Random) -> tuple[int, ...]:
    first, second = rng.sample(range(2, level["multiple"] + 1), 2)
    return first, second


def sum_of_divisors(number: int) -> int:
    """Returns the sum of all positive divisors, the number itself included, in O(sqrt(n)) steps."""
    total = 0
    for low in range(1, math.isqrt(number) + 1):
        if number % low == 0:
            total += low + (number // low if low * low != number else 0)
    return total


DIVISORS = PhrasedTaskset(
    name="divisors",
    version=2,
    null_answers=("60",),
    levels=(
        {"number": 299, "multiple": 39, "whole": 699},
        {"number": 499, "multiple": 69, "whole": 1499},
        {"number": 999, "multiple": 99, "whole": 4999},
    ),
    questions=(
        Question(
            Operation(
                "gcd", "import math\nprint(math.gcd({a},{b}))", ("print(math.gcd({a},{b}))", "print(gcd({a},{b}))")
            ),
            ("gcd of {a} and {b}?", "greatest common divisor of {a} and {b}?", "largest divisor of both {a} and {b}?"),
            _with_common_factor,
            math.gcd,
        ),
        Question(
            Operation(
                "lcm", "import math\nprint(math.lcm({a},{b}))", ("print(math.lcm({a},{b}))", "print(lcm({a},{b}))")
            ),
            ("lcm of {a} and {b}?", "least common multiple of {a} and {b}?", "smallest multiple of both {a} and {b}?"),
            _two_numbers,
            math.lcm,
        ),
        Question(
            Operation(
                "divisor_sum",
                "print(sum(d for d in range(1,{a}+1) if {a}%d==0))",
                ("print(sum(divisors({a})))", "print(divisors({a}))"),
            ),
            ("sum of all divisors of {a}?", "what do the divisors of {a} add up to?"),
            lambda level, rng: (rng.randint(6, level["whole"]),),
            sum_of_divisors,
        ),
    ),
)
