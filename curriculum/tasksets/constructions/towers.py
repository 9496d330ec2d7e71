"""Power towers modulo a number, and prime powers in differences of huge powers."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from curriculum.contract.topics import Item
from curriculum.tasksets.exact_arithmetic import primes_between
from curriculum.tasksets.huge_numbers import factorial_valuation, tower
from curriculum.tasksets.statements import say, whole


def towers(hand: bool, level: int, rng: Random) -> Item:
    """Asks for a tower modulo a number, and from level 3 on for a sum of two."""
    modulus = rng.randint(101, 999) if hand or level < 2 else rng.randint(1_000, 99_999)
    heights = [(2, 3, 3, 4, 4)[level]] * (1 if level < 3 else 2)
    most = 9 if hand else 30 + 20 * level
    chosen = [[rng.randint(2 + (level > 0), most) for _ in range(height)] for height in heights]
    answer = sum(tower(one, modulus) for one in chosen) % modulus
    if answer in {modulus - 1, *range(10), *(one[0] ** k for one in chosen for k in range(1, 17))}:
        return towers(hand, level, rng)  # as is frequent for bases with a common divisor
    text = say(
        rng,
        (
            "What is the remainder when {tower} is divided by {m}?",
            "Which remainder does the number {tower} leave when it is divided by {m}?",
            "Find the whole number z from 0 to {last} for which {m} divides {tower} - z.",
        ),
        tower=" + ".join(map(written, chosen)), m=modulus, last=modulus - 1,
    )  # fmt: skip
    return whole(text, f"{chosen} {modulus}", answer)


def written(levels: Sequence[int]) -> str:
    """Returns a tower as text: `2^(3^4)`."""
    *below, text = map(str, levels)
    for base in reversed(below):
        text = f"{base}^({text})" if "^" in text else f"{base}^{text}"
    return text


def valuation(number: int, prime: int) -> int:
    """Returns the exponent of a prime in a non-zero number."""
    count = 0
    while number % prime == 0:
        number, count = number // prime, count + 1
    return count


def lifted(hand: bool, level: int, rng: Random) -> Item:
    """Asks for the exponent of a prime in a^(N!) - b^(N!); N exceeds the order of a/b, so that the prime divides it."""
    prime = rng.choice(primes_between(3, 11 if hand else 23))
    a, b = sorted(rng.sample([one for one in range(2, 60 + 60 * level) if one % prime], 2), reverse=True)
    size = (600, 1_000, 2_000, 4_000, 10_000)[level] if hand else (2_000, 10**4, 10**6, 10**9, 10**13)[level]
    n = rng.randint(size // 2, size) + prime
    order = next(k for k in range(1, prime) if (a**k - b**k) % prime == 0)
    first = valuation(a**order - b**order, prime)
    if level > 2 and (order == 1 or first == 1):
        return lifted(hand, level, rng)  # the factorial's exponent alone, or one more, would be right
    answer = first + factorial_valuation(n, prime)
    text = say(
        rng,
        (
            "Let N = {n}!, the factorial. What is the largest k for which {p}^k divides {a}^N - {b}^N?",
            "With N = {n}! (a factorial), how often can {a}^N - {b}^N be divided by {p} without a remainder?",
        ),
        n=n, p=prime, a=a, b=b,
    )  # fmt: skip
    return whole(text, f"{a} {b} {n} {prime}", answer)
