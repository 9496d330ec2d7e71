"""Arithmetic below normal forms: sums of monomials over generators, and their quotients.

A generator is a symbol, pi, i, a prime (whose powers are roots), a root of unity, or an opaque term. Products are
reduced immediately: roots of primes stay below one, i below two, and exp(i pi/12) is written in square roots.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from typing import Any

MAX_PRODUCTS = 20_000
"""Maximum pairs of monomials in one multiplication."""
MAX_WHOLE_POWER = 60
MAX_TERMS = 300
"""Maximum terms of a power of a sum that is expanded; larger ones stay a power."""
MAX_BITS = 4_000
MAX_PRIME = 2_000
"""Bound of the trial divisors; the remaining cofactor stays one generator."""

Generator = tuple[Any, ...]
Monomial = frozenset[tuple[Generator, Fraction]]
Polynomial = dict[Monomial, Fraction]

ONE: Monomial = frozenset()
IMAGINARY: Generator = ("i",)
PI: Generator = ("pi",)
ZETA: Generator = ("zeta",)
"""exp(i pi)."""


class NoNormalFormError(Exception):
    """A normal form would be too large, or has a zero denominator; nothing is known then."""


def single(generator: Generator, power: Fraction = Fraction(1)) -> Polynomial:
    return {frozenset({(generator, power)}): Fraction(1)}


def constant(value: Fraction) -> Polynomial:
    return {ONE: value} if value else {}


def add(first: Polynomial, second: Polynomial) -> Polynomial:
    total = dict(first)
    for monomial, factor in second.items():
        found = total.get(monomial, 0) + factor
        if found:
            total[monomial] = found
        else:
            total.pop(monomial, None)
    return total


def scaled(of: Polynomial, factor: Fraction) -> Polynomial:
    return {monomial: value * factor for monomial, value in of.items()} if factor else {}


def multiply(first: Polynomial, second: Polynomial) -> Polynomial:
    if len(first) * len(second) > MAX_PRODUCTS:
        raise NoNormalFormError
    total: Polynomial = {}
    for left, a in first.items():
        for right, b in second.items():
            for monomial, factor in _merged(left, right, a * b).items():
                found = total.get(monomial, 0) + factor
                if found:
                    total[monomial] = found
                else:
                    total.pop(monomial, None)
    return total


def _merged(left: Monomial, right: Monomial, factor: Fraction) -> Polynomial:
    if not left or not right:
        return {left or right: factor}
    powers = dict(left)
    for generator, power in right:
        powers[generator] = powers.get(generator, Fraction(0)) + power
    return reduced(powers, factor)


def reduced(powers: dict[Generator, Fraction], factor: Fraction) -> Polynomial:
    """Multiplies a product of powers with a number, and returns a polynomial in normal form. There, exponents of primes
    lie in [0, 1), those of i are 0 or 1, and roots of unity are written out. Raises NoNormalFormError if it gets too
    large."""
    if factor.numerator.bit_length() + factor.denominator.bit_length() > MAX_BITS:
        raise NoNormalFormError
    remaining: dict[Generator, Fraction] = {}
    others: list[Polynomial] = []
    for generator, power in powers.items():
        if not power:
            continue
        match generator:
            case ("i",) if power.denominator == 1:
                quarter = power.numerator % 4
                factor = -factor if quarter > 1 else factor
                if quarter % 2:
                    remaining[generator] = Fraction(1)
            case ("prime", prime):
                whole = math.floor(power)
                if abs(whole) > MAX_BITS:
                    raise NoNormalFormError
                factor *= Fraction(prime) ** whole
                if power != whole:
                    remaining[generator] = power - whole
            case ("zeta",):
                turn = power % 2
                if turn >= 1:
                    factor, turn = -factor, turn - 1
                if 12 % turn.denominator == 0:
                    others.append(_roots_of_unity()[turn])
                else:
                    remaining[generator] = turn
            case ("under", numerator) if power.denominator == 1 and _expands(len(numerator), power.numerator):
                others.extend([dict(numerator)] * power.numerator)
            case ("real root", degree, under) if power.denominator == 1 and power % degree != power:
                whole = math.floor(power / degree)
                remaining[under] = remaining.get(under, Fraction(0)) + whole
                if power - whole * degree:
                    remaining[generator] = power - whole * degree
            case ("abs", numerator) if power.denominator == 1 and power % 2 == 0 and 0 < power <= MAX_WHOLE_POWER:
                others.extend([dict(numerator)] * power.numerator)
            case _:
                remaining[generator] = remaining.get(generator, Fraction(0)) + power
    total: Polynomial = {frozenset(part for part in remaining.items() if part[1]): factor}
    for other in others:
        total = multiply(total, other)
    return total


def _expands(terms: int, power: int) -> bool:
    """True if an integer power of a sum of `terms` terms has few enough terms to be multiplied out."""
    return 0 < power <= MAX_WHOLE_POWER and math.comb(terms + power - 1, power) <= MAX_TERMS


@cache
def _roots_of_unity() -> dict[Fraction, Polynomial]:
    """Returns a table from t, the multiples of 1/12 in [0, 2), to exp(i pi t) written with square roots."""
    half = Fraction(1, 2)
    third = add(constant(half), scaled(multiply(single(IMAGINARY), single(("prime", 3), half)), half))
    fourth = scaled(multiply(single(("prime", 2), half), add(constant(Fraction(1)), single(IMAGINARY))), half)
    table: dict[Fraction, Polynomial] = {}
    by_thirds = constant(Fraction(1))
    for thirds in range(6):
        value = by_thirds
        for fourths in range(8):
            table[(Fraction(thirds, 3) + Fraction(fourths, 4)) % 2] = value
            value = multiply(value, fourth)
        by_thirds = multiply(by_thirds, third)
    return table


@dataclass(frozen=True)
class RationalFunction:
    """Quotient of two polynomials. A one-term denominator is divided out, so that 1 remains."""

    over: Polynomial
    under: Polynomial = field(default_factory=lambda: {ONE: Fraction(1)})

    @property
    def whole(self) -> bool:
        """True if the quotient is a polynomial: its denominator is 1."""
        return len(self.under) == 1

    @property
    def number(self) -> Fraction | None:
        """Value of the quotient if it is a rational number, else None."""
        return self.over.get(ONE, Fraction(0)) if self.whole and set(self.over) <= {ONE} else None

    @property
    def key(self) -> tuple[Any, ...]:
        """Returns a hashable key: quotients with the same numerator and the same denominator have the same key."""
        return (frozenset(self.over.items()), frozenset(self.under.items()))

    def __neg__(self) -> RationalFunction:
        return RationalFunction(scaled(self.over, Fraction(-1)), self.under)

    def __add__(self, other: RationalFunction) -> RationalFunction:
        if self.under == other.under:
            return RationalFunction(add(self.over, other.over), self.under)
        over = add(multiply(self.over, other.under), multiply(other.over, self.under))
        return _ratio(over, multiply(self.under, other.under))

    def __sub__(self, other: RationalFunction) -> RationalFunction:
        return self + -other

    def __mul__(self, other: RationalFunction) -> RationalFunction:
        return _ratio(multiply(self.over, other.over), multiply(self.under, other.under))

    def __truediv__(self, other: RationalFunction) -> RationalFunction:
        """Divides by another quotient. Raises NoNormalFormError for a division by zero."""
        return _ratio(multiply(self.over, other.under), multiply(self.under, other.over))

    def __pow__(self, exponent: int) -> RationalFunction:
        if len(self.over) == 1 and self.whole:
            ((monomial, factor),) = self.over.items()
            if abs(exponent) * (factor.numerator.bit_length() + factor.denominator.bit_length()) > 4 * MAX_BITS:
                raise NoNormalFormError
            powers = {generator: power * exponent for generator, power in monomial}
            return RationalFunction(reduced(powers, factor**exponent))
        if self.whole and self.over and not _expands(len(self.over), abs(exponent)) and exponent:
            return RationalFunction(single(("under", frozenset(self.over.items())), Fraction(exponent)))
        if abs(exponent) > MAX_WHOLE_POWER:
            raise NoNormalFormError
        total = plain(1)
        for _ in range(abs(exponent)):
            total = total * self
        return total if exponent >= 0 else plain(1) / total


def plain(value: Fraction | int) -> RationalFunction:
    return RationalFunction(constant(Fraction(value)))


def _ratio(over: Polynomial, under: Polynomial) -> RationalFunction:
    """Returns the quotient of two polynomials. Raises NoNormalFormError for a zero denominator."""
    if not under:
        raise NoNormalFormError
    if len(under) > 1:
        return RationalFunction(over, under)
    ((monomial, factor),) = under.items()
    return RationalFunction(multiply(over, reduced({generator: -power for generator, power in monomial}, 1 / factor)))


def primes(value: int) -> list[tuple[int, int]]:
    """Returns an integer's prime factors with their powers. A remaining factor without small prime factors counts as a
    prime."""
    found: list[tuple[int, int]] = []
    rest = value
    divisor = 2
    while divisor * divisor <= rest and divisor < MAX_PRIME:
        count = 0
        while rest % divisor == 0:
            rest //= divisor
            count += 1
        if count:
            found.append((divisor, count))
        divisor += 1 if divisor == 2 else 2
    if rest > 1:
        root = math.isqrt(rest)
        found.append((root, 2) if root * root == rest else (rest, 1))
    return found


def prime_powers(value: Fraction) -> list[tuple[int, int]]:
    """Returns the prime powers of the absolute value of a non-zero number; denominators give negative powers."""
    below = [(prime, -count) for prime, count in primes(value.denominator)]
    return [*primes(abs(value.numerator)), *below]


def number_power(base: Fraction, exponent: Fraction) -> Polynomial:
    """Returns the principal power of a rational number as a polynomial in roots of primes."""
    powers: dict[Generator, Fraction] = {("prime", prime): count * exponent for prime, count in prime_powers(base)}
    if base < 0:
        powers[ZETA] = exponent
    return reduced(powers, Fraction(1))
