"""Greatest sets and products: a bound that is proved, and reached by a construction."""

from __future__ import annotations

from functools import reduce
from math import isqrt, prod
from random import Random

from curriculum.contract.topics import Item
from curriculum.tasksets.statements import listed, say, whole


def without_ratios(low: int, high: int, ratio: int, steps: int) -> int:
    """Returns the size of a largest subset of low, ..., high in which no element is ratio, ..., ratio^steps times
    another: in each chain of such multiples, every place divisible by steps + 1."""

    def reached(place: int) -> int:
        return max(0, int(high // ratio**place) - low + 1)

    total, place = 0, 0
    while reached(place):
        total, place = total + reached(place) - reached(place + 1), place + steps + 1
    return total


def sparse_sets(hand: bool, level: int, rng: Random) -> Item:
    size = (300, 400, 500, 700, 900)[level] if hand else (500, 10**6, 10**9, 10**12, 10**15)[level]
    high, ratio, steps = rng.randint(size // 2, size), rng.randint(2, 4 + level), 1 + (level > 1) + (level > 3)
    low = 1 if level < 3 else rng.randint(2, isqrt(high))
    factors = listed([ratio**step for step in range(1, steps + 1)], "or")
    text = say(
        rng,
        (
            ("What is the largest possible number of elements of a set of whole numbers from {low} to {high} in which"
            " no element is exactly {factors} times another element?"),
            ("From the whole numbers {low}, ..., {high}, as many as possible are chosen so that none of them is exactly"
            " {factors} times another one. How many can be chosen?"),
        ),
        low=low, high=high, factors=factors,
    )  # fmt: skip
    return whole(text, f"{low} {high} {ratio} {steps}", without_ratios(low, high, ratio, steps))


def distinct_parts(total: int, least: int) -> list[int]:
    """Returns the parts of the greatest product of different whole numbers >= least > 1 with this sum: consecutive
    numbers, of which one may be left out, and the largest may be one more."""
    parts: list[int] = []
    left = total
    while left >= least + len(parts):
        parts.append(least + len(parts))
        left -= parts[-1]
    for at in range(1, left + 1):
        parts[-1 - (at - 1) % len(parts)] += 1
    return parts


def greatest_products(hand: bool, level: int, rng: Random) -> Item:
    """Asks for the greatest product of whole numbers with a given sum: a given number of them, or different ones; of
    large ones modulo a prime."""
    different = level > 1
    size = (200, 300, 120, 150, 200)[level] if hand else (400, 10**9, 10**4, 10**7, 10**9)[level]
    total, count = rng.randint(size // 2 + 4, size), rng.randint(3, 6 if hand else 30)
    least = rng.randint(2, 9) if different else 1
    modulus = 10**9 + 7
    if different:
        found = distinct_parts(total, least)
        rule = f"different whole numbers, each at least {least}, with the sum {total}"
    else:
        found = [total // count] * (count - total % count) + [total // count + 1] * (total % count)
        rule = f"exactly {count} positive whole numbers with the sum {total}"
    small = hand or level == 0
    answer = prod(found) if small else reduce(lambda a, b: a * b % modulus, found, 1)
    phrases = ("What is the greatest possible product of {rule}?", "Find the greatest product of {rule}.")
    if not small:
        phrases = (
            "Let P be the greatest possible product of {rule}. What is the remainder when P is divided by {m}?",
            "Suppose that {rule} have the greatest possible product. Which remainder does it leave on division by {m}?",
        )
    text = say(rng, phrases, rule=rule, m=modulus)
    return whole(text, f"{total} {0 if different else count} {least} {different}", answer)
