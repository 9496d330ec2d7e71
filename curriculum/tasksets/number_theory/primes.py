"""Primes: how many lie in a range, which comes next, the largest factor, sums of factors, sums of two primes."""

from __future__ import annotations

from math import prod
from random import Random

from curriculum.contract.topics import Item
from curriculum.tasksets.exact_arithmetic import factors, primes, primes_between
from curriculum.tasksets.statements import mathematics, say, whole

STARTS = (60, 200, 500, 1_500, 6_000)
WIDTHS = (90, 120, 150, 200, 260)


def _range(level: int, rng: Random) -> tuple[int, int]:
    low = rng.randint(STARTS[level], 3 * STARTS[level])
    return low, low + rng.randint(WIDTHS[level] // 3, WIDTHS[level])


def _count(level: int, rng: Random) -> Item:
    low, high = _range(level, rng)
    text = say(
        rng,
        (
            "How many primes are there from {low} to {high}, both included?",
            "Count the prime numbers p with {low} <= p <= {high}.",
            "How many of the whole numbers {low}, ..., {high} are prime?",
        ),
        low=low, high=high,
    )  # fmt: skip
    return whole(text, f"{low} {high}", len(primes_between(low, high)))


def _sum(level: int, rng: Random) -> Item:
    low, high = _range(level, rng)
    text = say(
        rng,
        (
            "What is the sum of all primes from {low} to {high}, both included?",
            "Add up the prime numbers p with {low} <= p <= {high}.",
        ),
        low=low, high=high,
    )  # fmt: skip
    return whole(text, f"{low} {high}", sum(primes_between(low, high)))


def _next(level: int, rng: Random) -> Item:
    low, after = rng.randint(STARTS[level], 2 * STARTS[level] + 600), 1 + level
    found = primes_between(low + 1, low + 1_000)[after - 1]
    rank = ("first", "second", "third", "fourth", "fifth")[level]
    text = say(
        rng,
        (
            "What is the {rank} prime greater than {low}?",
            "List the primes above {low} in ascending order. Which is the {rank} one?",
        ),
        rank=rank, low=low,
    )  # fmt: skip
    return whole(text, f"{low} {after}", found)


def _product(level: int, rng: Random) -> int:
    top = (61, 97, 151, 199, 251)[level]
    found = 1
    for prime in rng.choices(primes_between(2, top), k=3 if level < 4 else 4):
        found *= prime
    return found


def _largest(level: int, rng: Random) -> Item:
    n = _product(level, rng)
    text = say(
        rng,
        (
            "What is the largest prime factor of {n}?",
            "Which is the greatest prime that divides {n}?",
            "Factorize {n} into primes. What is the largest of them?",
        ),
        n=n,
    )
    return whole(text, f"{n}", max(factors(n)))


def _factor_sum(level: int, rng: Random) -> Item:
    n = _product(level, rng)
    text = say(
        rng,
        (
            "Write {n} as a product of primes. What is the sum of these primes, each counted as often as it occurs?",
            "What is the sum of the prime factors of {n}, counted with multiplicity?",
        ),
        n=n,
    )
    return whole(text, f"{n}", sum(factors(n).elements()))


def _two_primes(level: int, rng: Random) -> Item:
    n = 2 * rng.randint((50, 300, 600, 1_000, 1_500)[level], (600, 1_000, 1_500, 2_500, 4_000)[level])
    among = primes_between(3, n)
    known = set(among)
    pairs = sum(1 for prime in among if 2 * prime <= n and n - prime in known)
    text = say(
        rng,
        (
            "In how many ways is {n} a sum of two odd primes? The order of the two does not matter.",
            "How many pairs of odd primes p <= q are there with p + q = {n}?",
        ),
        n=n,
    )
    return whole(text, f"{n}", pairs)


def _smallest_nondivisor(level: int, rng: Random) -> Item:
    at = rng.randrange(1, 6 + level)  # each as often: 3 would be right more often than not
    answer, other = primes()[at], rng.randint(2, 499)
    if other % answer == 0:
        return _smallest_nondivisor(level, rng)
    n = prod(primes()[:at]) * other
    text = say(
        rng,
        (
            "What is the smallest prime that does not divide {n}?",
            "Which is the least prime number that is no factor of {n}?",
        ),
        n=n,
    )
    return whole(text, f"{n}", answer)


PRIMES = mathematics(
    "primes",
    3,
    {
        "prime_count": _count,
        "prime_sum": _sum,
        "next_prime": _next,
        "largest_prime_factor": _largest,
        "prime_factor_sum": _factor_sum,
        "sums_of_two_primes": _two_primes,
        "smallest_prime_that_does_not_divide": _smallest_nondivisor,
    },
)
