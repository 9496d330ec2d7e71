"""Enclosures of logarithms of positive numbers that are too large or too small to compute.

Used only to tell two numbers apart. Factorials are enclosed by Robbins' form of Stirling's formula (A remark on
Stirling's formula, 1955): sqrt(2 pi n) (n/e)^n e^(1/(12n+1)) < n! < sqrt(2 pi n) (n/e)^n e^(1/(12n)) for n >= 1.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from mpmath.ctx_iv import MPIntervalContext

from verifiers.answers.grammar.errors import GrammarError
from verifiers.answers.grammar.nodes import Constant, Expression, FunctionCall, Number, Power, Product, Quotient, Sum
from verifiers.answers.grammar.rational import rational

LOGARITHM_DIGITS = 60
SHOWN_DIGITS = 20
MAX_EXPONENT_BITS = 4_000


class NoSizeError(Exception):
    """The number is not known to be positive, or even its logarithm is too large."""


class Sizes:
    def __init__(self) -> None:
        self.iv: Any = MPIntervalContext()
        self.iv.dps = LOGARITHM_DIGITS

    def _exact(self, value: Fraction) -> Any:
        return self.iv.mpf(value.numerator) / self.iv.mpf(value.denominator)

    def logarithm(self, node: Expression) -> Any:
        """Returns an interval that encloses the natural logarithm of a positive number. Raises NoSizeError if the
        number is not known to be positive, or is too large even so."""
        match node:
            case Number(value) if value > 0:
                return self.iv.log(self._exact(value))
            case Constant("pi"):
                return self.iv.log(self.iv.pi)
            case Constant("e"):
                return self.iv.mpf(1)
            case Sum(parts):
                sizes = [self.logarithm(part) for part in parts]
                low = max(size.a for size in sizes)
                high = max(size.b for size in sizes)
                return self.iv.mpf([low, high]) + self.iv.mpf([0, 1]) * self.iv.log(self.iv.mpf(len(parts)))
            case Product(parts):
                return sum(map(self.logarithm, parts), self.iv.mpf(0))
            case Quotient(above, below):
                return self.logarithm(above) - self.logarithm(below)
            case Power(base, exponent):
                return self.logarithm(base) * self._exact(self._whole(exponent, natural=False))
            case FunctionCall("sqrt", (of,)):
                return self.logarithm(of) / 2
            case FunctionCall("exp", (of,)):
                return self._exact(self._whole(of, natural=False))
            case FunctionCall("factorial", (of,)):
                return self._factorial(self._whole(of))
            case FunctionCall("binomial", (of, chosen)):
                all_of, some = self._whole(of), self._whole(chosen)
                if some > all_of:
                    raise NoSizeError
                return self._factorial(all_of) - self._factorial(some) - self._factorial(all_of - some)
            case _:
                raise NoSizeError

    def _whole(self, node: Expression, *, natural: bool = True) -> Fraction:
        try:
            value = rational(node)
        except GrammarError as error:
            raise NoSizeError from error
        if value is None or (natural and (value.denominator != 1 or value < 0)):
            raise NoSizeError
        if value.numerator.bit_length() + value.denominator.bit_length() > MAX_EXPONENT_BITS:
            raise NoSizeError
        return value

    def _factorial(self, of: Fraction) -> Any:
        if of < 2:
            return self.iv.mpf(0)
        n = self._exact(of)
        middle = n * self.iv.log(n) - n + self.iv.log(2 * self.iv.pi * n) / 2
        one = self.iv.mpf(1)
        return self.iv.mpf([(middle + one / (12 * n + 1)).a, (middle + one / (12 * n)).b])


def differing_sizes(first: Expression, second: Expression) -> dict[str, str]:
    """Compares two positive numbers too large to compute by their logarithms. Returns both logarithms if they certainly
    differ, else an empty dict."""
    sizes = Sizes()
    try:
        left, right = sizes.logarithm(first), sizes.logarithm(second)
    except (NoSizeError, ArithmeticError, ValueError, TypeError):
        return {}
    if left.b < right.a or right.b < left.a:
        sides = (("ln submitted", left), ("ln expected", right))
        return {name: str(sizes.iv.nstr(size, SHOWN_DIGITS))[:80] for name, size in sides}
    return {}
