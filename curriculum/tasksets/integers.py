"""Elementary number theory with exact integers: primes, factors, divisors, numerals. Pure, without any library."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from functools import cache
from math import isqrt, prod

SIEVED = 20_000
DIGITS = "0123456789ABCDEF"


@cache
def primes() -> tuple[int, ...]:
    """Returns all primes below `SIEVED`."""
    open_ = bytearray([1]) * SIEVED
    open_[:2] = b"\0\0"
    for number in range(2, isqrt(SIEVED) + 1):
        if open_[number]:
            open_[number * number :: number] = bytes(len(range(number * number, SIEVED, number)))
    return tuple(number for number in range(SIEVED) if open_[number])


def primes_between(low: int, high: int) -> tuple[int, ...]:
    """Returns the primes from low to high, both included; high is below `SIEVED`."""
    return primes()[bisect_left(primes(), low) : bisect_right(primes(), high)]


def factors(number: int) -> Counter[int]:
    """Returns the prime factors of a positive number below `SIEVED` squared, with multiplicities."""
    found: Counter[int] = Counter()
    for prime in primes():
        if prime * prime > number:
            break
        while number % prime == 0:
            found[prime] += 1
            number //= prime
    if number > 1:
        found[number] += 1
    return found


def divisors(number: int) -> list[int]:
    """Returns all positive divisors of a number, ascending."""
    found = [1]
    for prime, times in factors(number).items():
        found = [one * prime**power for one in found for power in range(times + 1)]
    return sorted(found)


def totient(number: int) -> int:
    """Counts the numbers from 1 to `number` that are coprime to it."""
    return prod((prime - 1) * prime ** (times - 1) for prime, times in factors(number).items())


def numeral(number: int, base: int) -> str:
    """Returns a non-negative number as a numeral in base 2 to 16."""
    text = ""
    while number:
        number, digit = divmod(number, base)
        text = DIGITS[digit] + text
    return text or "0"


def bezout(a: int, b: int) -> tuple[int, int, int]:
    """Returns (g, x, y) with g the greatest common divisor and a x + b y = g."""
    if b == 0:
        return a, 1, 0
    g, x, y = bezout(b, a % b)
    return g, y, x - a // b * y


def remainders(pairs: list[tuple[int, int]]) -> int:
    """Returns the smallest non-negative number with these (remainder, modulus) pairs; the moduli are coprime."""
    found, step = 0, 1
    for remainder, modulus in pairs:
        found += step * ((remainder - found) * pow(step, -1, modulus) % modulus)
        step *= modulus
    return found
