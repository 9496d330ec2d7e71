"""Terms of recurrences so far away that only their period or a closed form reaches them."""

from __future__ import annotations

from random import Random

from curriculum.contract.topics import Item
from curriculum.tasksets.exact_arithmetic import linear, primes_between
from curriculum.tasksets.huge_numbers import distant_term, next_prime, tower
from curriculum.tasksets.statements import nonzero, say, whole


def linear_terms(level: int, rng: Random) -> Item:
    """Asks for a term of a linear recurrence of order two modulo a prime; from level 2 on the index is a tower."""
    p = rng.choice(primes_between(101, 997))
    u, v = nonzero(rng, 9), nonzero(rng, 9)
    first, second = rng.randint(0, 20), rng.randint(1, 20)
    if v - u == 1 or u + v == 1:
        return linear_terms(level, rng)  # 1 or -1 is a root of its polynomial, so a term may be seen at once
    bases = [rng.randint(3, 30) for _ in range(2)]
    index = (f"{10**3}", f"{10**12}", "{}^(10^12)", "{}^({}^(10^12))", "{}^({}^(10^12)) + {}^(10^15)")[level]
    index = index.format(*bases, bases[0]) if level else str(rng.randint(300, 999))
    period = p * (p * p - 1)  # a multiple of the period of any such sequence modulo p, as p does not divide v
    at = {
        0: lambda: int(index),
        1: lambda: 10**12,
        2: lambda: tower((bases[0], 10**12), period),
        3: lambda: tower((*bases, 10**12), period),
        4: lambda: tower((*bases, 10**12), period) + tower((bases[0], 10**15), period),
    }[level]()
    rule = linear((u, v), ("*a(n-1)", "*a(n-2)")).replace("- *", "- ").replace("+ *", "+ ")
    rule = rule.removeprefix("*").replace("-*", "-")
    text = say(
        rng,
        (
            ("Let a(0) = {a}, a(1) = {b} and a(n) = {rule} for all n >= 2. Let N = {index}. What is the remainder when"
            " a(N) is divided by {p}? It is a whole number from 0 to {last}."),
            ("A sequence has a(0) = {a}, a(1) = {b}, and a(n) = {rule} from n = 2 on. With N = {index}, find the whole"
            " number z from 0 to {last} for which the prime {p} divides a(N) - z."),
        ),
        a=first, b=second, rule=rule, index=index, p=p, last=p - 1,
    )  # fmt: skip
    return whole(text, f"{first} {second} {rule} {index} {p}", distant_term((u, v), (first, second), at, p))


def doubled_terms(level: int, rng: Random) -> Item:
    """Asks for x(N) modulo a prime, where x(k + 1) = x(k)^2 - 2, so that x(k) = z^(2^k) + z^(-2^k) for some z."""
    p = next_prime(rng.randint(*((101, 999), (10**4, 10**5), (10**7, 10**8), (10**9, 10**10), (10**12, 10**13))[level]))
    start = rng.randint(3, 99)
    n = (rng.randint(9, 30), 10**3, 10**6, 10**12, 10**15)[level] + rng.randint(0, 999 if level else 9)
    exponent = pow(2, n, p * p - 1)
    # z^e + z^(-e) is term e of V(k) = start V(k-1) - V(k-2), V(0) = 2, V(1) = start.
    answer = distant_term((start, -1), (2, start), exponent, p)
    text = say(
        rng,
        (
            ("A sequence begins with x(0) = {start}, and x(k + 1) = x(k)^2 - 2 for all k >= 0. What is the remainder"
            " when x({n}) is divided by the prime {p}?"),
            ("Let x(0) = {start}, and let x(k + 1) = x(k)^2 - 2 for every k >= 0. Find the remainder of x({n}) on"
            " division by {p}, which is prime."),
        ),
        start=start, n=n, p=p,
    )  # fmt: skip
    return whole(text, f"{start} {n} {p}", answer)
