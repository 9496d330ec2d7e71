"""Questions about how a number is written: the sum of its digits, and the same number in base 8.

Levels raise the number of digits. Digit sums of random numbers crowd around their middle; here the sum is drawn first
and the digits to fit, so that all sums are asked for equally often.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from curriculum.family import Operation
from curriculum.phrased import PhrasedFamily, Question


@dataclass(frozen=True)
class DigitsLevel:
    digits: int


LEVELS = (DigitsLevel(digits=4), DigitsLevel(digits=5))


def _with_even_digit_sums(level: DigitsLevel, rng: Random) -> tuple[int, ...]:
    left = rng.randint(2, 9 * level.digits - 2)
    digits = []
    for behind in reversed(range(level.digits)):
        digit = rng.randint(max(0, left - 9 * behind), min(9, left))
        digits.append(digit)
        left -= digit
    first = rng.choice([place for place, digit in enumerate(digits) if digit > 0])
    leading = digits.pop(first)
    rng.shuffle(digits)
    return (int("".join(map(str, [leading, *digits]))),)


def _any_number(level: DigitsLevel, rng: Random) -> tuple[int, ...]:
    return (rng.randint(10 ** (level.digits - 2), 10**level.digits - 1),)


DIGITS = PhrasedFamily(
    name="digits",
    domain="numerals",
    version=1,
    null_answer="14",
    levels=LEVELS,
    questions=(
        Question(
            Operation(
                "digit_sum", 1, "print(sum(map(int,str({a}))))", ("print(sum(map(int,{a})))", "print(sum(str({a})))")
            ),
            ("digit sum of {a}?", "add up the digits of {a}?"),
            _with_even_digit_sums,
            lambda a: sum(map(int, str(a))),
        ),
        Question(
            Operation("octal", 1, "print(oct({a})[2:])", ("print({a}.oct())", "print(octal({a}))")),
            ("{a} in octal?", "{a} written in base 8?"),
            _any_number,
            lambda a: f"{a:o}",
        ),
    ),
)
