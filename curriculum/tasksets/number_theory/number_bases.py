"""Numerals in other bases: converting, reckoning in them, sums of their digits, and finding the base."""

from __future__ import annotations

from random import Random

from curriculum.contract.topics import Item
from curriculum.tasksets.exact_arithmetic import numeral
from curriculum.tasksets.statements import literal, mathematics, say, whole

SIZES = ((60, 700), (701, 3_000), (3_001, 20_000), (20_001, 200_000), (200_001, 2_000_000))
NULLS = ("0", "1", "2", "10")


def _number(level: int, rng: Random) -> int:
    return rng.randint(*SIZES[level])


def _base(level: int, rng: Random) -> int:
    return rng.choice((2, 3, 4, 5, 6, 7, 8, 9) if level else (2, 3, 4, 5))


def _to(level: int, rng: Random) -> Item:
    n, base = _number(level, rng), _base(level, rng)
    text = say(
        rng,
        (
            "Write {n} in base {base}. Give the digits only.",
            "What is the numeral of the decimal number {n} in base {base}? Give the digits only.",
        ),
        n=n, base=base,
    )  # fmt: skip
    return whole(text, f"{n} {base}", int(numeral(n, base)))


def _from(level: int, rng: Random) -> Item:
    n, base = _number(level, rng), _base(level, rng)
    text = say(
        rng,
        (
            "The numeral {digits} is written in base {base}. What number is it in base ten?",
            "Convert {digits} from base {base} to decimal.",
        ),
        digits=numeral(n, base), base=base,
    )  # fmt: skip
    return whole(text, f"{n} {base}", n)


def _between(level: int, rng: Random) -> Item:
    n = _number(level, rng)
    source, target = rng.sample((2, 3, 4, 5, 6, 7, 8, 9), 2)
    text = say(
        rng,
        (
            ("The numeral {digits} is written in base {source}. Write the same number in base {target}; give the digits"
            " only."),
            "Convert {digits} from base {source} to base {target}. Give the digits only.",
        ),
        digits=numeral(n, source), source=source, target=target,
    )  # fmt: skip
    return whole(text, f"{n} {source} {target}", int(numeral(n, target)))


def _reckon(level: int, rng: Random) -> Item:
    base = rng.choice((3, 4, 5, 6, 7, 8, 9))
    a, b = sorted((_number(level, rng), rng.randint(*SIZES[max(level - 1, 0)])))
    sign, result = rng.choice((("+", a + b), ("*", a * b)))
    text = say(
        rng,
        (
            "All numerals here are in base {base}. What is {a} {sign} {b}? Give the digits in base {base} only.",
            "Work in base {base}: {a} {sign} {b} = ? Answer with the digits in base {base} only.",
        ),
        base=base, a=numeral(a, base), b=numeral(b, base), sign=sign,
    )  # fmt: skip
    return whole(text, f"{base} {a} {sign} {b}", int(numeral(result, base)))


def _digit_sum(level: int, rng: Random) -> Item:
    n, base = _number(level, rng), _base(level, rng)
    total = sum(int(digit) for digit in numeral(n, base))
    text = say(
        rng,
        (
            "What is the sum of the digits of {n} when it is written in base {base}? Answer in base ten.",
            "Write the decimal number {n} in base {base} and add up its digits. What is the sum, in base ten?",
        ),
        n=n, base=base,
    )  # fmt: skip
    return whole(text, f"{n} {base}", total)


def _which(level: int, rng: Random) -> Item:
    base = rng.choice((5, 6, 7, 8, 9, 11, 12, 13))
    n = rng.randrange(base + 2, base ** (3 + (level + 1) // 2))
    if not numeral(n, base).isdigit():
        return _which(level, rng)
    text = say(
        rng,
        (
            "In which base b does the numeral {digits} stand for the decimal number {n}?",
            "The decimal number {n} is written {digits} in base b. What is b?",
        ),
        digits=numeral(n, base), n=n,
    )  # fmt: skip
    return whole(text, f"{n} {numeral(n, base)}", base)


def _hexadecimal(level: int, rng: Random) -> Item:
    n = _number(level, rng)
    text = say(
        rng,
        (
            "Write {n} in base 16, with the digits 0 to 9 and the capital letters A to F and nothing else.",
            "What is the decimal number {n} in hexadecimal? Use capital letters, and no prefix.",
        ),
        n=n,
    )
    return literal(text, f"{n}", numeral(n, 16))


NUMBER_BASES = mathematics(
    "number_bases",
    2,
    {
        "to_base": _to,
        "from_base": _from,
        "between_bases": _between,
        "reckoning_in_a_base": _reckon,
        "digit_sum_in_a_base": _digit_sum,
        "unknown_base": _which,
        "hexadecimal": _hexadecimal,
    },
    NULLS,
)
