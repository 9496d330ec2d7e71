"""Divisibility: common divisors and multiples of several numbers, counts and sums of divisors, coprime numbers."""

from __future__ import annotations

from math import gcd, lcm
from random import Random

from curriculum.contract.topics import Item
from curriculum.tasksets.exact_arithmetic import divisors, factors, totient
from curriculum.tasksets.statements import listed, mathematics, say, whole

SIZES = ((30, 699), (700, 1_999), (2_000, 5_999), (6_000, 19_999), (20_000, 99_999), (100_000, 299_999))
TRIED, LEAST_DIVISORS = 6, 6
"""Candidates per question, so that the number of divisors is hard to guess, and the fewest divisors of one."""


def _rich(level: int, rng: Random) -> int:
    """Draws a number with at least six divisors, half of the time a multiple of 2, 6 or 12."""
    while True:
        step = rng.choice((1, 1, 1, 2, 6, 12))
        number = rng.randint(*SIZES[level]) // step * step
        if len(divisors(number)) >= LEAST_DIVISORS:
            return number


def _common_divisor(level: int, rng: Random) -> Item:
    common = rng.randint(3, 12 * 3**level)
    numbers = rng.sample(range(2, 30 + 10 * level), 2 + level // 2)
    asked = [common * number for number in numbers]
    text = say(
        rng,
        (
            "What is the greatest common divisor of {numbers}?",
            "Find the largest whole number that divides each of {numbers}.",
            (
                "Boxes of {numbers} pencils are to be shared out in heaps of one size, nothing left over in any"
                " box. How"
                " large can a heap be at most?"
            ),
        ),
        numbers=listed(asked),
    )
    return whole(text, f"{sorted(asked)}", gcd(*asked))


def _common_multiple(level: int, rng: Random) -> Item:
    asked = rng.sample(range(4, 40 + 12 * level), 2 + (level + 1) // 2)
    text = say(
        rng,
        (
            "What is the least common multiple of {numbers}?",
            "Find the smallest positive whole number that is divisible by each of {numbers}.",
            (
                "Lights flash every {numbers} seconds. They flash together now; in how many seconds do all of"
                " them flash"
                " together next?"
            ),
        ),
        numbers=listed(asked),
    )
    return whole(text, f"{sorted(asked)}", lcm(*asked))


def _count(level: int, rng: Random) -> Item:
    numbers = (_rich(level + 1, rng) for _ in range(TRIED))
    by_count = {len(divisors(number)): number for number in numbers}
    n = by_count[rng.choice(sorted(by_count))]  # most numbers of a size have as many divisors as the others
    text = say(
        rng,
        (
            "How many positive divisors does {n} have?",
            "Count the whole numbers d >= 1 that divide {n}, 1 and {n} included.",
            "In how many ways can {n} be written as d times e with whole numbers d, e >= 1, order mattering?",
        ),
        n=n,
    )
    return whole(text, f"{n}", len(divisors(n)))


def _some(level: int, rng: Random) -> Item:
    n = _rich(level, rng)
    among = divisors(n)
    sort = rng.choice(("odd", "even", "above", "multiples"))
    d = {"odd": 2, "even": 2, "above": rng.randint(3, n // 3), "multiples": rng.choice([*factors(n)])}[sort]
    chosen = {
        "odd": [one for one in among if one % 2],
        "even": [one for one in among if one % 2 == 0],
        "above": [one for one in among if one > d],
        "multiples": [one for one in among if one % d == 0],
    }[sort]
    words = {
        "odd": "odd",
        "even": "even",
        "above": f"greater than {d}",
        "multiples": f"divisible by {d}" if d > 2 else "even",
    }[sort]
    text = say(
        rng,
        (
            "What is the sum of all positive divisors of {n} that are {words}?",
            "Add up those positive divisors of {n} that are {words}. What do you get?",
        ),
        n=n, words=words,
    )  # fmt: skip
    key = {"odd": "odd", "even": "multiples 2"}.get(sort, f"{sort} {d}")
    return whole(text, f"{n} {key}", sum(chosen))


def _coprime(level: int, rng: Random) -> Item:
    n = rng.randint(*SIZES[level])
    text = say(
        rng,
        (
            "How many whole numbers from 1 to {n} have no common factor with {n} other than 1?",
            "What is Euler's totient of {n}?",
            "How many fractions k/{n} with 1 <= k <= {n} are in lowest terms?",
        ),
        n=n,
    )
    return whole(text, f"{n}", totient(n))


def _multiples(level: int, rng: Random) -> Item:
    steps = sorted(rng.sample(range(3, 20 + 4 * level), 2 if level < 3 else 3))
    if any(b % a == 0 for at, b in enumerate(steps) for a in steps[:at]):
        return _multiples(level, rng)  # one of them would make no difference
    low = rng.randint(1, 50 * 4**level)
    high: int = low + rng.randint(60, 100) * 4**level
    exactly = level >= 2 and rng.random() < 0.5

    def divisible(*by: int) -> int:
        return high // lcm(*by) - (low - 1) // lcm(*by)

    ones = sum(divisible(step) for step in steps)
    twos = sum(divisible(a, b) for at, a in enumerate(steps) for b in steps[:at])
    threes = divisible(*steps) if len(steps) == 3 else 0
    count = ones - 2 * twos + 3 * threes if exactly else ones - twos + threes
    how = "exactly one" if exactly else "at least one"
    text = say(
        rng,
        (
            "How many whole numbers from {low} to {high}, both included, are divisible by {how} of {steps}?",
            "Count the whole numbers n with {low} <= n <= {high} that are multiples of {how} of the numbers {steps}.",
        ),
        low=low, high=high, steps=listed(steps), how=how,
    )  # fmt: skip
    return whole(text, f"{low} {high} {steps} {how}", count)


DIVISIBILITY = mathematics(
    "divisibility",
    3,
    {
        "common_divisor": _common_divisor,
        "common_multiple": _common_multiple,
        "divisor_count": _count,
        "some_divisors": _some,
        "totient": _coprime,
        "multiples_in_range": _multiples,
    },
)
