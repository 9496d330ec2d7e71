"""Equations in whole numbers: coins, amounts that cannot be paid, least solutions, squares, products."""

from __future__ import annotations

from math import gcd, isqrt, prod
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
    values = sorted(rng.sample(range(2, 12 + 2 * level), 3 if level < 4 else 4))
    total = rng.randint(30 + 20 * level, 90 + 40 * level)
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
    a, b = _coprime_pair((3, 10, 20, 30, 50)[level], (34, 50, 65, 90, 150)[level], rng)
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
    # A product of such primes has several solutions; how many is quickly guessed, so a certain one is asked for.
    primes = (5, 13, 17, 29, 37, 41, 53, 61, 73, 89, 97)[: 11 if level < 2 else 8 if level < 4 else 6]
    n = prod(rng.choices(primes, k=2 + level // 2)) * rng.choice((1, 2, 4, 9, 18, 25))
    larger = [x for x in range(isqrt(n // 2), isqrt(n) + 1) if 2 * x * x >= n and isqrt(n - x * x) ** 2 == n - x * x]
    largest = rng.random() < 0.5
    text = say(
        rng,
        (
            "Whole numbers x >= y >= 0 satisfy x^2 + y^2 = {n}. What is the {which} possible x?",
            "Write {n} as x^2 + y^2 with whole numbers x >= y >= 0 and the {which} x that is possible. What is x?",
            "Among all whole x and y with x >= y >= 0 and x^2 + y^2 = {n}, which x is the {which}?",
            "A point with whole coordinates x >= y >= 0 lies on the circle x^2 + y^2 = {n}. Find its {which} x.",
        ),
        which="largest" if largest else "smallest", n=n,
    )  # fmt: skip
    return whole(text, f"{n} {largest}", larger[-1] if largest else larger[0])


def _products(level: int, rng: Random) -> Item:
    a, b = rng.randint(2, 4 + 2 * level), rng.randint(2, 4 + 2 * level)
    n = rng.choice((6, 12, 24)) * rng.randint(4, 30 * (1 + level))
    # (x + a)(y + b) = n
    solutions = [(d - a, n // d - b) for d in divisors(n) if d > a and n // d > b]
    if len(solutions) < 2:
        return _products(level, rng)
    what, answer = rng.choice(
        (
            ("How many solutions (x, y) are there?", len(solutions)),
            ("What is the largest possible x?", max(x for x, _ in solutions)),
            ("What is the smallest possible value of x + y?", min(x + y for x, y in solutions)),
        )
    )
    text = say(
        rng,
        (
            "Positive whole numbers x and y satisfy xy + {b}x + {a}y = {c}. {what}",
            "The equation xy + {b}x + {a}y = {c} is to be solved in whole numbers x, y >= 1. {what}",
        ),
        a=a, b=b, c=n - a * b, what=what,
    )  # fmt: skip
    return whole(text, f"{b} {a} {n - a * b} {what}", answer)


def _squares_apart(level: int, rng: Random) -> Item:
    d = rng.randint(3, 30 + 10 * level)
    n = d * (d + 2 * rng.randint(1, 30 * (1 + level)))
    found = [(d + n // d) // 2 for d in divisors(n) if d * d < n and (d + n // d) % 2 == 0]
    if len(found) < 2:
        return _squares_apart(level, rng)
    largest = rng.random() < 0.5
    answer = max(found) if largest else min(found)
    text = say(
        rng,
        (
            "Positive whole numbers x and y satisfy x^2 - y^2 = {n}. {what}",
            "The equation x^2 - y^2 = {n} is to be solved in whole numbers x, y >= 1. {what}",
        ),
        n=n, what=f"What is the {'largest' if largest else 'smallest'} possible x?",
    )  # fmt: skip
    return whole(text, f"{n} {largest}", answer)


DIOPHANTINE_EQUATIONS = mathematics(
    "diophantine_equations",
    2,
    {
        "coin_combinations": _coins,
        "impossible_amounts": _unpayable,
        "least_solution": _least,
        "sums_of_two_squares": _two_squares,
        "sums_and_products": _products,
        "differences_of_squares": _squares_apart,
    },
)
