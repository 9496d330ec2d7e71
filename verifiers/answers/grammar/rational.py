"""Exact evaluation of trees over the rational numbers, with every result's size bounded in advance.

Never uses floats. `rational` returns None for a value not known to be rational (pi, sqrt(2)); that is not an error.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import cache

from verifiers.answers.grammar import nodes as n
from verifiers.answers.grammar.errors import GrammarError, TooLargeError, UndefinedError
from verifiers.answers.grammar.nodes import children

MAX_BITS = 1 << 16
"""Maximum bits of a numerator or denominator: about 19,700 decimal digits."""
MAX_ROOT = 1_000
MAX_ZETA = 60
"""Maximum absolute value of an integer at which the zeta function is computed exactly."""

NOTHING: Mapping[str, Fraction] = {}


def rational(node: n.Expression, values: Mapping[str, Fraction] = NOTHING) -> Fraction | None:
    """Returns the exact value of an expression, or None if it is not known to be rational.

    Raises UndefinedError if there is no value, TooLargeError if it would have more than MAX_BITS bits.
    """
    match node:
        case n.Number(value):
            return value
        case n.Symbol(name):
            return values.get(name)
        case n.Constant():
            return None
        case n.Negation(of):
            inside = rational(of, values)
            return None if inside is None else -inside
    parts = [rational(part, values) for part in children(node)]
    known = [part for part in parts if part is not None]
    if isinstance(node, n.Quotient) and parts[1] == 0:
        raise UndefinedError("a division by zero")
    if len(known) < len(parts):
        return None
    match node:
        case n.Sum():
            return _fold(known, lambda a, b: a + b)
        case n.Product():
            return _fold(known, lambda a, b: a * b)
        case n.Quotient():
            return bounded(known[0] / known[1])
        case n.Power():
            return power(known[0], known[1])
        case n.FunctionCall(name):
            return call(name, known)


def folded(node: n.Expression) -> n.Expression:
    """Replaces an expression by its value if that is known to be rational; else returns it unchanged."""
    value = rational(node)
    return node if value is None else n.Number(value)


def bounded(value: Fraction) -> Fraction:
    if max(value.numerator.bit_length(), value.denominator.bit_length()) > MAX_BITS:
        raise TooLargeError(f"a value of more than {MAX_BITS} bits")
    return value


def _fold(values: list[Fraction], combine: Callable[[Fraction, Fraction], Fraction]) -> Fraction:
    total = values[0]
    for value in values[1:]:
        total = bounded(combine(total, value))
    return total


def power(base: Fraction, exponent: Fraction) -> Fraction | None:
    """Computes base ** exponent exactly; None for an irrational value. Raises UndefinedError for 0 to a power of zero
    or less."""
    if base == 0:
        if exponent <= 0:
            raise UndefinedError("zero to the power of zero or less")
        return base
    if exponent.denominator != 1:
        root = rational_root(base, exponent.denominator)
        return None if root is None else power(root, Fraction(exponent.numerator))
    if abs(base) == 1:
        return base if exponent.numerator % 2 else Fraction(1)
    bits = max(base.numerator.bit_length(), base.denominator.bit_length()) - 1
    if abs(exponent) > MAX_BITS or bits * abs(exponent.numerator) > MAX_BITS:
        raise TooLargeError(f"a power of more than {MAX_BITS} bits")
    return bounded(base**exponent.numerator)


def rational_root(value: Fraction, degree: int) -> Fraction | None:
    """Returns a root of a non-negative number if it is rational; None for irrational roots and negative numbers."""
    if value < 0 or degree > MAX_ROOT:
        return None
    above, below = integer_root(value.numerator, degree), integer_root(value.denominator, degree)
    return Fraction(above, below) if above**degree == value.numerator and below**degree == value.denominator else None


def integer_root(value: int, degree: int) -> int:
    """Returns the largest r with r**degree <= value, for value >= 0, by Newton's method from above."""
    if degree == 2 or value < 2:
        return math.isqrt(value) if degree == 2 else value
    guess = 1 << -(-value.bit_length() // degree)
    while True:
        smaller = ((degree - 1) * guess + value // guess ** (degree - 1)) // degree
        if smaller >= guess:
            return guess
        guess = smaller


def root(value: Fraction, degree: Fraction) -> Fraction | None:
    r"""Returns `\sqrt[n]{a}` if it is rational, else None: real for a negative number if the degree is odd. Raises
    UndefinedError for a degree that is not 1, 2, 3, ..."""
    if degree.denominator != 1 or degree <= 0:
        raise UndefinedError("a root whose degree is not 1, 2, 3, ...")
    if value < 0 and degree % 2 == 1:
        positive = rational_root(-value, degree.numerator)
        return None if positive is None else -positive
    return rational_root(value, degree.numerator)


def _whole(name: str, values: list[Fraction]) -> list[int]:
    if any(value.denominator != 1 for value in values):
        raise GrammarError(f"{name} of a number that is not whole")
    return [value.numerator for value in values]


def factorial(value: int) -> Fraction:
    if value < 0:
        raise UndefinedError("the factorial of a negative number")
    if value > MAX_BITS or math.lgamma(value + 1) / math.log(2) > MAX_BITS:
        raise TooLargeError(f"a factorial of more than {MAX_BITS} bits")
    return Fraction(math.factorial(value))


@cache
def bernoulli(index: int) -> Fraction:
    """Returns the Bernoulli number B_n, with B_1 = -1/2."""
    if index == 0:
        return Fraction(1)
    return -sum((math.comb(index + 1, k) * bernoulli(k) for k in range(index)), Fraction(0)) / (index + 1)


def zeta(at: Fraction) -> Fraction | None:
    """Returns the value of the zeta function at 0, -1, -2, ...; None elsewhere. Raises UndefinedError at its pole."""
    if at == 1:
        raise UndefinedError("zeta(1), a pole")
    if at.denominator != 1 or not -MAX_ZETA <= at <= 0:
        return None
    value = bernoulli(1 - at.numerator) / (1 - at.numerator)
    return -value if at.numerator % 2 else value


def binomial(of: int, chosen: int) -> Fraction:
    if of < 0 or chosen < 0:
        raise UndefinedError("a binomial coefficient of a negative number")
    smaller = min(chosen, of - chosen)
    if smaller > 0 and (smaller > MAX_BITS or smaller * (of.bit_length() - smaller.bit_length() + 3) > 4 * MAX_BITS):
        raise TooLargeError(f"a binomial coefficient of more than {MAX_BITS} bits")
    return bounded(Fraction(math.comb(of, chosen)))


def call(name: str, values: list[Fraction]) -> Fraction | None:
    """Evaluates a named function of rational numbers; None if its value is not known to be rational."""
    first = values[0]
    match name:
        case "sqrt":
            return rational_root(first, 2)
        case "cbrt":
            return root(first, Fraction(3))
        case "root":
            return root(first, values[1])
        case "abs":
            return abs(first)
        case "sign":
            return Fraction((first > 0) - (first < 0))
        case "floor":
            return Fraction(math.floor(first))
        case "ceil":
            return Fraction(math.ceil(first))
        case "min":
            return min(values)
        case "max":
            return max(values)
        case "gcd":
            return Fraction(math.gcd(*_whole(name, values)))
        case "lcm":
            return bounded(Fraction(math.lcm(*_whole(name, values))))
        case "factorial":
            return factorial(_whole("a factorial", values)[0])
        case "zeta":
            return zeta(first)
        case "binomial":
            return binomial(*_whole("a binomial coefficient", values))
        case "mod" | "floordiv" if values[1] == 0:
            raise UndefinedError("a division by zero")
        case "mod":
            return first % values[1]
        case "floordiv":
            return Fraction(first // values[1])
        case "exp" | "sin" | "tan" | "sinh" | "tanh" | "asin" | "atan" if first == 0:
            return Fraction(1 if name == "exp" else 0)
        case "cos" | "cosh" | "sec" if first == 0:
            return Fraction(1)
        case "ln" if first == 0:
            raise UndefinedError("the logarithm of zero")
        case "ln" if first == 1:
            return Fraction(0)
        case _:
            return None
