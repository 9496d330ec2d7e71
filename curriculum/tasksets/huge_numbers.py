"""Exact arithmetic beyond what can be counted out: towers, distant terms, sums and counts up to 10^15. Pure.

Invariant: the time of every function grows with the number of digits of its arguments, or with a small modulus.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import comb

from curriculum.tasksets.exact_arithmetic import totient

WITNESSES = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37)


def is_prime(number: int) -> bool:
    """True for primes; exact below 3.3 * 10^24 (Miller-Rabin with the first twelve primes)."""
    if number < 2 or any(number % prime == 0 for prime in WITNESSES):
        return number in WITNESSES
    odd, twos = number - 1, 0
    while odd % 2 == 0:
        odd, twos = odd // 2, twos + 1
    return all(
        (power := pow(base, odd, number)) == 1 or any(pow(power, 2**at, number) == number - 1 for at in range(twos))
        for base in WITNESSES
    )


def next_prime(number: int) -> int:
    """Returns the smallest prime above a number."""
    number += 1
    while not is_prime(number):
        number += 1
    return number


def tower(levels: Sequence[int], modulus: int) -> int:
    """Returns the power tower `levels[0]^(levels[1]^...)` modulo a number, by Euler's theorem in its general form: an
    exponent e >= phi(m) may be replaced by phi(m) + e mod phi(m)."""
    return _capped(levels, modulus) % modulus


def _capped(levels: Sequence[int], modulus: int) -> int:
    """Returns the tower if it is below `modulus`; otherwise the number from `modulus` to `2 * modulus - 1` that is
    congruent to it."""
    base, rest = levels[0], levels[1:]
    exponent = _capped(rest, totient(modulus)) if rest and modulus > 1 else 1
    value, power = 1, base if base < modulus else modulus + base % modulus
    while exponent:
        if exponent % 2:
            value = _fold(value * power, modulus)
        power, exponent = _fold(power * power, modulus), exponent // 2
    return value


def _fold(number: int, modulus: int) -> int:
    return number if number < modulus else modulus + number % modulus


def distant_term(weights: tuple[int, int], first: tuple[int, int], index: int, modulus: int) -> int:
    """Returns the term `index` of a(n) = u a(n-1) + v a(n-2) modulo a number, by powers of x modulo x^2 - u x - v."""
    u, v = weights
    (a, b), (c, d) = (1, 0), (0, 1)  # a + b x: the power so far, and x^(2^k)
    while index:
        if index % 2:
            a, b = (a * c + b * d * v) % modulus, (a * d + b * c + b * d * u) % modulus
        c, d, index = (c * c + d * d * v) % modulus, (2 * c * d + d * d * u) % modulus, index // 2
    return (a * first[0] + b * first[1]) % modulus


def floor_sum(count: int, modulus: int, a: int, b: int) -> int:
    """Returns the sum of floor((a k + b) / modulus) over k from 0 to `count - 1`, by Euclid's algorithm; a, b >= 0."""
    total = 0
    while True:
        total += (a // modulus) * (count * (count - 1) // 2) + (b // modulus) * count
        a, b = a % modulus, b % modulus
        last = a * count + b
        if last < modulus:
            return total
        count, modulus, a, b = last // modulus, a, modulus, last % modulus


def sums_modulo(steps: Iterable[int], times: int, classes: int, modulus: int) -> list[int]:
    """Counts the sequences of `times` steps by their sum modulo `classes`, itself modulo a number: cyclic powers."""
    power = [0] * classes
    for step in steps:
        power[step % classes] += 1
    found = [1, *[0] * (classes - 1)]
    while times:
        if times % 2:
            found = _convolved(found, power, modulus)
        power, times = _convolved(power, power, modulus), times // 2
    return found


def _convolved(a: Sequence[int], b: Sequence[int], modulus: int) -> list[int]:
    size = len(a)
    return [sum(a[at] * b[(total - at) % size] for at in range(size)) % modulus for total in range(size)]


def subsets_divisible(last: int, divisor: int, modulus: int) -> int:
    """Counts the subsets of 1, ..., `last` whose sum the divisor divides, modulo a number: a block of consecutive
    numbers is a step of 2^divisor choices."""
    block = [sum(step) for step in _subsets(range(1, divisor + 1))]
    blocks = sums_modulo(block, last // divisor, divisor, modulus)
    rest = sums_modulo((sum(step) for step in _subsets(range(1, last % divisor + 1))), 1, divisor, modulus)
    return _convolved(blocks, rest, modulus)[0]


def _subsets(numbers: Iterable[int]) -> list[list[int]]:
    found: list[list[int]] = [[]]
    for number in numbers:
        found += [[*some, number] for some in found]
    return found


def with_digit_sum(end: int, total: int) -> int:
    """Counts the whole numbers from 0 on, below `end`, whose decimal digit sum is `total`."""
    digits = [int(digit) for digit in str(end)]
    count, left = 0, total
    for at, digit in enumerate(digits):
        count += sum(_sequences(len(digits) - at - 1, left - lower) for lower in range(digit))
        left -= digit
    return count


def _sequences(places: int, total: int) -> int:
    """Counts the sequences of `places` decimal digits with this sum, by inclusion and exclusion."""
    if places == 0 or total < 0:
        return int(total == 0)
    return sum(
        (-1) ** over * comb(places, over) * comb(total - 10 * over + places - 1, places - 1)
        for over in range(min(places, total // 10) + 1)
    )


def factorial_valuation(number: int, prime: int) -> int:
    """Returns the exponent of a prime in the factorial of a number (Legendre)."""
    count = 0
    while number:
        number //= prime
        count += number
    return count
