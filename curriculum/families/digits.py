"""Asks how a number is written: the sum of its digits, and the same number in base 8.

Levels raise the number of digits. Digit sums of random numbers crowd around their middle; here the sum is drawn first
and the digits to fit, so that all sums are asked for equally often.
"""

from __future__ import annotations

from random import Random

from curriculum.families.phrased import Level, Operation, PhrasedTaskset, Question


def _with_even_digit_sums(level: Level, rng: Random) -> tuple[int, ...]:
    left = rng.randint(2, 9 * level["digits"] - 2)
    digits = []
    for behind in reversed(range(level["digits"])):
        digit = rng.randint(max(0, left - 9 * behind), min(9, left))
        digits.append(digit)
        left -= digit
    first = rng.choice([place for place, digit in enumerate(digits) if digit > 0])
    leading = digits.pop(first)
    rng.shuffle(digits)
    return (int("".join(map(str, [leading, *digits]))),)


DIGITS = PhrasedTaskset(
    name="digits",
    version=1,
    null_answers=("14",),
    levels=({"digits": 4}, {"digits": 5}),
    questions=(
        Question(
            Operation(
                "digit_sum", "print(sum(map(int,str({a}))))", ("print(sum(map(int,{a})))", "print(sum(str({a})))")
            ),
            ("digit sum of {a}?", "add up the digits of {a}?"),
            _with_even_digit_sums,
            lambda a: sum(map(int, str(a))),
        ),
        Question(
            Operation("octal", "print(oct({a})[2:])", ("print({a}.oct())", "print(octal({a}))")),
            ("{a} in octal?", "{a} written in base 8?"),
            lambda level, rng: (rng.randint(10 ** (level["digits"] - 2), 10 ** level["digits"] - 1),),
            lambda a: f"{a:o}",
        ),
    ),
)
