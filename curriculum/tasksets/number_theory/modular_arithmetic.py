"""Modular arithmetic: inverses, powers, congruences, remainders to several moduli, orders, square roots."""

from __future__ import annotations

from math import gcd
from random import Random

from curriculum.contract.topics import Item
from curriculum.tasksets.exact_arithmetic import primes_between, remainders
from curriculum.tasksets.statements import listed, mathematics, say, whole

MODULI = ((20, 60), (61, 199), (200, 999), (1_000, 4_999), (5_000, 29_999))
PRIMES = ((31, 113), (114, 199), (200, 400), (401, 900), (901, 1_500))


def _coprime(rng: Random, modulus: int) -> int:
    while True:
        number = rng.randrange(2, modulus)
        if gcd(number, modulus) == 1:
            return number


def _inverse(level: int, rng: Random) -> Item:
    m = rng.randint(*MODULI[level])
    a = _coprime(rng, m)
    text = say(
        rng,
        (
            "Find the inverse of {a} modulo {m}: the whole number x from 1 to {last} with {a}x = 1 (mod {m}).",
            "Which whole number from 1 to {last}, multiplied by {a}, leaves the remainder 1 when divided by {m}?",
            "What is the multiplicative inverse of {a} mod {m}? Answer with a whole number from 1 to {last}.",
        ),
        a=a, m=m, last=m - 1,
    )  # fmt: skip
    return whole(text, f"{a} {m}", pow(a, -1, m))


def _power(level: int, rng: Random) -> Item:
    m = rng.randint(*MODULI[level])
    a, b = rng.randint(2, m - 1), rng.randint(5 * 10**level, 30 * 100**level)
    text = say(
        rng,
        (
            "What is the remainder when {a}^{b} is divided by {m}?",
            "Compute {a}^{b} mod {m}. Answer with a whole number from 0 to {last}.",
            "Dividing {a} to the power {b} by {m} leaves a remainder. What is it?",
        ),
        a=a, b=b, m=m, last=m - 1,
    )  # fmt: skip
    return whole(text, f"{a} {b} {m}", pow(a, b, m))


def _congruence(level: int, rng: Random) -> Item:
    common = 1 if level < 2 else rng.randint(2, 4 + level)
    m = rng.randint(*MODULI[level]) // common + 5
    a, b = _coprime(rng, m), rng.randrange(1, m)
    text = say(
        rng,
        (
            "Find the smallest whole number x >= 0 with {a}x = {b} (mod {m}).",
            "What is the least non-negative whole number x for which {a}x - {b} is divisible by {m}?",
            ("{a} times a number leaves the remainder {b} when divided by {m}. Which is the smallest such number, 0"
            " included?"),
        ),
        a=a * common, b=b * common, m=m * common,
    )  # fmt: skip
    return whole(text, f"{a * common} {b * common} {m * common}", b * pow(a, -1, m) % m)


def _chinese(level: int, rng: Random) -> Item:
    count = (2, 2, 3, 3, 4)[level]
    moduli: list[int] = []
    while len(moduli) < count:
        one = rng.randint(3, (14, 24, 24, 40, 60)[level])
        if all(gcd(one, other) == 1 for other in moduli):
            moduli.append(one)
    pairs = [(rng.randrange(one), one) for one in moduli]
    text = say(
        rng,
        (
            "Find the smallest whole number x >= 0 that leaves {parts}.",
            "What is the least non-negative whole number that leaves {parts}?",
            "A number leaves {parts}. What is the smallest such number, 0 included?",
        ),
        parts=listed([f"the remainder {r} when divided by {m}" for r, m in pairs]),
    )
    return whole(text, f"{sorted(pairs)}", remainders(pairs))


def _order(level: int, rng: Random) -> Item:
    p = rng.choice(primes_between(*PRIMES[level]))
    a = rng.randrange(2, p)
    order, power = 1, a
    while power != 1:
        order, power = order + 1, power * a % p
    text = say(
        rng,
        (
            "What is the multiplicative order of {a} modulo {p}?",
            "Find the smallest n >= 1 for which {a}^n leaves the remainder 1 when divided by {p}.",
            "What is the least positive whole number n such that {p} divides {a}^n - 1?",
        ),
        a=a, p=p,
    )  # fmt: skip
    return whole(text, f"{a} {p}", order)


def _square_root(level: int, rng: Random) -> Item:
    p = rng.choice(primes_between(*PRIMES[level]))
    root = rng.randint(2, (p - 1) // 2)
    text = say(
        rng,
        (
            "Find the smallest positive whole number x with x^2 = {a} (mod {p}).",
            "What is the least positive whole number whose square leaves the remainder {a} when divided by {p}?",
            "What is the smallest x >= 1 for which {p} divides x^2 - {a}?",
        ),
        a=root * root % p, p=p,
    )  # fmt: skip
    return whole(text, f"{root * root % p} {p}", root)


MODULAR_ARITHMETIC = mathematics(
    "modular_arithmetic",
    2,
    {
        "modular_inverse": _inverse,
        "modular_power": _power,
        "linear_congruence": _congruence,
        "chinese_remainder": _chinese,
        "multiplicative_order": _order,
        "modular_square_root": _square_root,
    },
)
