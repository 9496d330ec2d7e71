"""Exact arithmetic for tasksets: integers, polynomials as tuples, constant first, matrices as lists of rows. Pure."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import cache
from math import isqrt, prod

SIEVED = 20_000


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


def remainders(pairs: list[tuple[int, int]]) -> int:
    """Returns the smallest non-negative number with these (remainder, modulus) pairs; the moduli are coprime."""
    found, step = 0, 1
    for remainder, modulus in pairs:
        found += step * ((remainder - found) * pow(step, -1, modulus) % modulus)
        step *= modulus
    return found


Number = int | Fraction
Coefficients = Sequence[Number]


def multiplied(a: Coefficients, b: Coefficients) -> list[Number]:
    product: list[Number] = [0] * (len(a) + len(b) - 1)
    for i, one in enumerate(a):
        for j, other in enumerate(b):
            product[i + j] += one * other
    return product


def added(a: Coefficients, b: Coefficients) -> list[Number]:
    return [(a[at] if at < len(a) else 0) + (b[at] if at < len(b) else 0) for at in range(max(len(a), len(b)))]


def with_roots(roots: Iterable[Number]) -> list[Number]:
    """Returns the monic polynomial with these roots."""
    found: list[Number] = [1]
    for root in roots:
        found = multiplied(found, [-root, 1])
    return found


def value_at(a: Coefficients, x: Number) -> Number:
    found: Number = 0
    for coefficient in reversed(a):
        found = found * x + coefficient
    return found


def remainder(a: Coefficients, b: Coefficients) -> list[Number]:
    """Returns the remainder of `a` divided by `b`, whose leading coefficient is not 0."""
    left: list[Number] = list(a)
    while len(left) >= len(b):
        factor = Fraction(left[-1]) / b[-1]
        shift = len(left) - len(b)
        for at, coefficient in enumerate(b):
            left[shift + at] -= factor * coefficient
        left.pop()
    return left or [0]


def derived(a: Coefficients) -> list[Number]:
    return [power * coefficient for power, coefficient in enumerate(a)][1:] or [0]


def integrated(a: Coefficients) -> list[Number]:
    """Returns the antiderivative of a polynomial that is 0 at 0."""
    return [0, *(Fraction(coefficient) / (power + 1) for power, coefficient in enumerate(a))]


def composed(outer: Coefficients, inner: Coefficients) -> list[Number]:
    """Returns the polynomial outer(inner(x))."""
    found: list[Number] = [0]
    for coefficient in reversed(outer):
        found = added(multiplied(found, inner), [coefficient])
    return found


def written(a: Coefficients, variable: str = "x") -> str:
    """Returns a polynomial in plain notation, highest power first: `3x^2 - x + (1/2)`."""
    text = ""
    for power in range(len(a) - 1, -1, -1):
        coefficient = a[power]
        if coefficient == 0:
            continue
        size = -coefficient if coefficient < 0 else coefficient
        letter = "" if power == 0 else variable if power == 1 else f"{variable}^{power}"
        number = "" if size == 1 and letter else f"({size})" if size.denominator > 1 else str(size)
        sign = "-" if coefficient < 0 else "+"
        text += f" {sign} {number}{letter}" if text else f"{'-' if coefficient < 0 else ''}{number}{letter}"
    return text or "0"


def linear(coefficients: Sequence[Number], names: Sequence[str]) -> str:
    """Returns a sum of multiples of these names: `2x - y + 3z`. An empty name gives a plain number."""
    text = ""
    for coefficient, name in zip(coefficients, names, strict=True):
        if coefficient == 0:
            continue
        size = -coefficient if coefficient < 0 else coefficient
        number = "" if size == 1 and name else f"({size})" if size.denominator > 1 else str(size)
        if text:
            text += f" {'-' if coefficient < 0 else '+'} {number}{name}"
        else:
            text = f"{'-' if coefficient < 0 else ''}{number}{name}"
    return text or "0"


Rows = Sequence[Sequence[int | Fraction]]


def rank(rows: Rows) -> int:
    """Returns the rank of a matrix, by elimination."""
    work, found = [[Fraction(one) for one in row] for row in rows], 0
    for column in range(len(work[0])):
        pivot = next((at for at in range(found, len(work)) if work[at][column]), None)
        if pivot is None:
            continue
        work[found], work[pivot] = work[pivot], work[found]
        for row in work[found + 1 :]:
            factor = row[column] / work[found][column]
            row[:] = [a - factor * b for a, b in zip(row, work[found], strict=True)]
        found += 1
    return found
