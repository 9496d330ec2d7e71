"""Sums of monomials over generators, and their quotients: the arithmetic below normal forms.

A generator is a symbol, pi, i, a prime (whose powers are roots), a root of unity, or something opaque. A product is
reduced at once: roots of primes stay below one, i below two, and exp(i pi/12) is written in square roots.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any

MAX_PRODUCTS = 20_000
"""Pairs of monomials in one multiplication."""
MAX_WHOLE_POWER = 60
MAX_TERMS = 300
"""Of a power of a sum that is written out: a larger one stays a power."""
MAX_BITS = 4_000
MAX_PRIME = 2_000
"""Trial divisors; what is left of a number after that stays one generator."""

Generator = tuple[Any, ...]
Monomial = frozenset[tuple[Generator, Fraction]]
Polynomial = dict[Monomial, Fraction]

ONE: Monomial = frozenset()
IMAGINARY: Generator = ("i",)
PI: Generator = ("pi",)
ZETA: Generator = ("zeta",)
"""exp(i pi)."""


class NoNormalFormError(Exception):
    """It would be too large, or has a zero denominator: nothing is known then."""


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
    """A product of powers in its normal form: roots of primes below one, i below two, roots of unity resolved."""
    if factor.numerator.bit_length() + factor.denominator.bit_length() > MAX_BITS:
        raise NoNormalFormError
    kept: dict[Generator, Fraction] = {}
    others: list[Polynomial] = []
    for generator, power in powers.items():
        if not power:
            continue
        match generator:
            case ("i",) if power.denominator == 1:
                quarter = power.numerator % 4
                factor = -factor if quarter > 1 else factor
                if quarter % 2:
                    kept[generator] = Fraction(1)
            case ("prime", prime):
                whole = math.floor(power)
                if abs(whole) > MAX_BITS:
                    raise NoNormalFormError
                factor *= Fraction(prime) ** whole
                if power != whole:
                    kept[generator] = power - whole
            case ("zeta",):
                turn = power % 2
                if turn >= 1:
                    factor, turn = -factor, turn - 1
                if 12 % turn.denominator == 0:
                    others.append(root_of_unity(turn))
                else:
                    kept[generator] = turn
            case ("under", numerator) if power.denominator == 1 and _expands(len(numerator), power.numerator):
                others.extend([dict(numerator)] * power.numerator)
            case ("real root", degree, under) if power.denominator == 1 and power % degree != power:
                whole = math.floor(power / degree)
                kept[under] = kept.get(under, Fraction(0)) + whole
                if power - whole * degree:
                    kept[generator] = power - whole * degree
            case ("abs", numerator) if power.denominator == 1 and power % 2 == 0 and 0 < power <= MAX_WHOLE_POWER:
                others.extend([dict(numerator)] * power.numerator)
            case _:
                kept[generator] = kept.get(generator, Fraction(0)) + power
    total: Polynomial = {frozenset(part for part in kept.items() if part[1]): factor}
    for other in others:
        total = multiply(total, other)
    return total


def _expands(terms: int, power: int) -> bool:
    """Whether a whole power of a sum has few enough terms to be written out."""
    return 0 < power <= MAX_WHOLE_POWER and math.comb(terms + power - 1, power) <= MAX_TERMS


@cache
def _root_table() -> dict[Fraction, tuple[tuple[Monomial, Fraction], ...]]:
    half = Fraction(1, 2)
    third = add(constant(half), scaled(multiply(single(IMAGINARY), single(("prime", 3), half)), half))
    fourth = scaled(multiply(single(("prime", 2), half), add(constant(Fraction(1)), single(IMAGINARY))), half)
    table: dict[Fraction, tuple[tuple[Monomial, Fraction], ...]] = {}
    for thirds in range(6):
        for fourths in range(8):
            turn = (Fraction(thirds, 3) + Fraction(fourths, 4)) % 2
            value = constant(Fraction(1))
            for _ in range(thirds):
                value = multiply(value, third)
            for _ in range(fourths):
                value = multiply(value, fourth)
            table[turn] = tuple(value.items())
    return table


def root_of_unity(turn: Fraction) -> Polynomial:
    """exp(i pi turn) for a multiple of 1/12, in square roots."""
    if turn == 0:
        return constant(Fraction(1))
    return dict(_root_table()[turn])


@dataclass(frozen=True)
class Ratio:
    over: Polynomial
    under: Polynomial


def ratio(over: Polynomial, under: Polynomial) -> Ratio:
    """Raises NoNormalFormError for a denominator that is zero. One of a single term is divided out."""
    if not under:
        raise NoNormalFormError
    if len(under) == 1:
        return Ratio(multiply(over, _inverse(under)), constant(Fraction(1)))
    return Ratio(over, under)


def _inverse(of: Polynomial) -> Polynomial:
    ((monomial, factor),) = of.items()
    return reduced({generator: -power for generator, power in monomial}, 1 / factor)


def added(first: Ratio, second: Ratio) -> Ratio:
    if first.under == second.under:
        return Ratio(add(first.over, second.over), first.under)
    over = add(multiply(first.over, second.under), multiply(second.over, first.under))
    return ratio(over, multiply(first.under, second.under))


def times(first: Ratio, second: Ratio) -> Ratio:
    return ratio(multiply(first.over, second.over), multiply(first.under, second.under))


def over(first: Ratio, second: Ratio) -> Ratio:
    return ratio(multiply(first.over, second.under), multiply(first.under, second.over))


def plain(value: Fraction) -> Ratio:
    return Ratio(constant(value), constant(Fraction(1)))


def key(of: Ratio) -> tuple[Any, ...]:
    """Hashable; the same for two ratios that are the same sums."""
    return (frozenset(of.over.items()), frozenset(of.under.items()))


def whole_power(base: Ratio, exponent: int) -> Ratio:
    if len(base.over) == 1 and len(base.under) == 1:
        folded = ratio(base.over, base.under)
        if len(folded.over) == 1:
            ((monomial, factor),) = folded.over.items()
            if abs(exponent) * (factor.numerator.bit_length() + factor.denominator.bit_length()) > 4 * MAX_BITS:
                raise NoNormalFormError
            powers = {generator: power * exponent for generator, power in monomial}
            return Ratio(reduced(powers, factor**exponent), constant(Fraction(1)))
    if len(base.under) == 1 and base.over and not _expands(len(base.over), abs(exponent)) and exponent:
        return Ratio(single(("under", frozenset(base.over.items())), Fraction(exponent)), constant(Fraction(1)))
    if abs(exponent) > MAX_WHOLE_POWER:
        raise NoNormalFormError
    total = plain(Fraction(1))
    for _ in range(abs(exponent)):
        total = times(total, base)
    return total if exponent >= 0 else over(plain(Fraction(1)), total)


def primes(value: int) -> list[tuple[int, int]]:
    """Prime factors with their powers; a cofactor without small primes counts as one."""
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


def number_power(base: Fraction, exponent: Fraction) -> Polynomial:
    """A principal power of a rational number."""
    powers: dict[Generator, Fraction] = {}
    for part, sign in ((abs(base.numerator), 1), (base.denominator, -1)):
        for prime, count in primes(part):
            generator: Generator = ("prime", prime)
            powers[generator] = powers.get(generator, Fraction(0)) + sign * count * exponent
    if base < 0:
        powers[ZETA] = exponent
    return reduced(powers, Fraction(1))
