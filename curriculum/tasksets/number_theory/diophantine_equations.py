"""Equations in whole numbers: coins, amounts that cannot be paid, least solutions, squares, products."""

from __future__ import annotations

from math import gcd, isqrt
from random import Random

from curriculum.contract.topics import Item
from curriculum.tasksets.exact_arithmetic import divisors
from curriculum.tasksets.statements import listed, mathematics, nonzero, say, whole


def _coprime_pair(low: int, high: int, rng: Random) -> tuple[int, int]:
    while True:
        a, b = sorted(rng.sample(range(low, high), 2))
        if gcd(a, b) == 1:
            return a, b


def _coins(level: int, rng: Random) -> Item:
    values = sorted(rng.sample(range(2, 9 + 2 * level), 2 if level == 0 else 3 if level < 4 else 4))
    total = rng.randint(20 + 20 * level, 40 + 40 * level)
    ways = [1] + [0] * total
    for value in values:
        for amount in range(value, total + 1):
            ways[amount] += ways[amount - value]
    text = say(
        rng,
        (
            ("In how many ways can {total} cents be paid with coins of {values} cents? Any number of each coin may be"
            " used, none included, and order does not matter."),
            ("Stamps of {values} cents are at hand, as many as you like of each. How many different combinations are"
            " worth exactly {total} cents?"),
        ),
        total=total, values=listed(values),
    )  # fmt: skip
    return whole(text, f"{total} {values}", ways[total])


def _unpayable(level: int, rng: Random) -> Item:
    a, b = _coprime_pair((2, 5, 8, 15, 30)[level], (9, 14, 25, 60, 150)[level], rng)
    count = rng.random() < 0.5
    text = say(
        rng,
        (
            "Only coins of {a} and {b} cents exist, as many as needed, and no change is given. {what}",
            "Packs hold {a} or {b} eggs and are never opened, so only sums of packs can be bought. {what}",
        ),
        a=a, b=b,
        what="How many positive whole amounts are impossible?" if count else "What is the largest impossible amount?",
    )  # fmt: skip
    answer = (a - 1) * (b - 1) // 2 if count else a * b - a - b
    return whole(text, f"{'count' if count else 'largest'} {a} {b}", answer)


def _least(level: int, rng: Random) -> Item:
    a, b = _coprime_pair((3, 10, 30, 100, 500)[level], (15, 40, 120, 500, 5_000)[level], rng)
    if rng.random() < 0.5:
        a, b = b, a
    common, c = (1 if level < 2 else rng.randint(2, 6)), nonzero(rng, 30 * 4**level)
    x = c * pow(a, -1, b) % b or b
    sign = rng.choice(("+", "-"))
    text = say(
        rng,
        (
            ("The equation {a}x {sign} {b}y = {c} has solutions in whole numbers x and y, negative ones included. What"
            " is the smallest positive x that occurs?"),
            ("Find the least whole number x >= 1 for which some whole number y, of any sign, has {a}x {sign} {b}y"
            " = {c}."),
        ),
        a=a * common, b=b * common, c=c * common, sign=sign,
    )  # fmt: skip
    return whole(text, f"{a * common} {sign} {b * common} {c * common}", x)


def _two_squares(level: int, rng: Random) -> Item:
    n = 1
    primes = rng.choices((5, 13, 17, 29, 37, 41), k=2 + level // 2)
    for prime in primes:
        n *= prime
    n *= rng.choice((1, 2, 4, 9)[: 2 + level // 2])
    count = sum(1 for x in range(isqrt(n) + 1) if isqrt(n - x * x) ** 2 == n - x * x)
    everywhere = rng.random() < 0.5
    solutions = sum(
        (1 if x == 0 else 2) * (1 if x * x == n else 2)
        for x in range(isqrt(n) + 1)
        if isqrt(n - x * x) ** 2 == n - x * x
    )
    text = say(
        rng,
        (
            ("How many pairs (x, y) of {what} whole numbers satisfy x^2 + y^2 = {n}? Pairs in another order count"
            " separately."),
            ("Count the solutions (x, y) of x^2 + y^2 = {n} in {what} whole numbers; (a, b) and (b, a) are different"
            " when a and b are."),
        ),
        what="arbitrary (positive, negative or zero)" if everywhere else "non-negative", n=n,
    )  # fmt: skip
    return whole(text, f"{n} {everywhere}", solutions if everywhere else count)


def _products(level: int, rng: Random) -> Item:
    a, b = rng.randint(2, 4 + 2 * level), rng.randint(2, 4 + 2 * level)
    n = rng.choice((12, 18, 20, 24, 30, 36, 48, 60, 72)) * rng.choice((1, 2, 5, 7, 6, 10, 14)[: 2 + level])
    count = sum(1 for d in divisors(n) if d > a and n // d > b)
    text = say(
        rng,
        (
            "How many pairs (x, y) of positive whole numbers satisfy xy + {b}x + {a}y = {c}?",
            "Count the solutions of xy + {b}x + {a}y = {c} in whole numbers x, y >= 1.",
        ),
        a=a, b=b, c=n - a * b,
    )  # fmt: skip
    return whole(text, f"{b} {a} {n - a * b}", count)


def _squares_apart(level: int, rng: Random) -> Item:
    n = rng.choice((15, 21, 24, 40, 45, 48)) * rng.choice((1, 3, 4, 5, 8, 7, 9, 12, 16, 20)[: 3 + 2 * level])
    n *= rng.choice((1, 3, 5, 11)) if level > 1 else 1
    pairs = [(d, n // d) for d in divisors(n) if d * d < n and (d + n // d) % 2 == 0]
    largest = rng.random() < 0.5
    answer = max((d + e) // 2 for d, e in pairs) if largest else len(pairs)
    text = say(
        rng,
        (
            "Positive whole numbers x and y satisfy x^2 - y^2 = {n}. {what}",
            "The equation x^2 - y^2 = {n} is to be solved in whole numbers x, y >= 1. {what}",
        ),
        n=n, what="What is the largest possible x?" if largest else "How many solutions (x, y) are there?",
    )  # fmt: skip
    return whole(text, f"{n} {largest}", answer)


DIOPHANTINE_EQUATIONS = mathematics(
    "diophantine_equations",
    1,
    {
        "coin_combinations": _coins,
        "impossible_amounts": _unpayable,
        "least_solution": _least,
        "sums_of_two_squares": _two_squares,
        "sums_and_products": _products,
        "differences_of_squares": _squares_apart,
    },
)
