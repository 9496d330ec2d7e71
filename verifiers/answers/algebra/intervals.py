"""Enclosures: intervals that certainly contain a tree's value, by interval arithmetic (mpmath's `iv`).

Disjoint enclosures prove two values different; an enclosure without zero proves a sign. They are used for nothing else:
closeness never proves equality. Rational parts are computed exactly first, so 10^600 + pi - 10^600 keeps its pi or
stays undecided, but is never decided wrongly.
"""

from __future__ import annotations

import itertools
import math
import threading
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from mpmath.ctx_iv import MPIntervalContext

from verifiers.answers.grammar import nodes as n
from verifiers.answers.grammar.errors import GrammarError
from verifiers.answers.grammar.rational import NOTHING, rational

MAX_EXPONENT = 1 << 16
"""Maximum exponent of two in any irrational intermediate value."""
DIGITS = (40, 300)
"""Working precision in decimal digits: the second is used only if the first left the question open."""

Interval = Any
"""An `iv.mpf` (real) or `iv.mpc` (complex); mpmath has no types."""


class OpenError(Exception):
    """No useful enclosure: it would contain a pole, a branch point or infinity, or the function is unknown."""


_made = threading.local()


def enclosure(digits: int) -> Enclosure:
    """Returns an evaluator for interval arithmetic with a number of digits; each thread creates and caches its own."""
    found: dict[int, Enclosure] = _made.__dict__.setdefault("by_digits", {})
    if digits not in found:
        found[digits] = Enclosure(digits)
    return found[digits]


class Enclosure:
    """Interval evaluator of expressions at one precision. Not thread-safe: the precision belongs to the context."""

    def __init__(self, digits: int) -> None:
        self.iv: Any = MPIntervalContext()
        self.iv.dps = digits

    def value(self, node: n.Expression, point: Mapping[str, Fraction] = NOTHING) -> Interval:
        """Returns an interval that encloses an expression's value at a point. Raises OpenError if no useful interval is
        found, GrammarError if the expression has no value."""
        try:
            return self._checked(self._value(node, point))
        except (ArithmeticError, ValueError, TypeError) as error:
            if isinstance(error, GrammarError):
                raise
            # mpmath raises these if an interval operation has no result.
            raise OpenError(str(error)) from error

    def real(self, node: n.Expression, point: Mapping[str, Fraction] = NOTHING) -> Interval:
        """Returns a real interval that encloses an expression's value. Raises OpenError if the value is not certainly
        real."""
        found = self.value(node, point)
        if isinstance(found, self.iv.mpc):
            if found.imag.a == 0 == found.imag.b:
                return found.real
            raise OpenError("not known to be real")
        return found

    def _exact(self, value: Fraction) -> Interval:
        return self.iv.mpf(value.numerator) / self.iv.mpf(value.denominator)

    def _parts(self, found: Interval) -> tuple[Any, ...]:
        return (found.real, found.imag) if isinstance(found, self.iv.mpc) else (found,)

    def _checked(self, found: Interval) -> Interval:
        """Returns an interval unchanged. Raises OpenError if it is unbounded or astronomically large."""
        for part in self._parts(found):
            for end in (part.a, part.b):
                if not -self.iv.inf < end < self.iv.inf:
                    raise OpenError("unbounded")
            if abs(part).b > self.iv.mpf(2) ** MAX_EXPONENT:
                raise OpenError("too large to enclose")
        return found

    def _value(self, node: n.Expression, point: Mapping[str, Fraction]) -> Interval:
        exact = rational(node, point)
        if exact is not None:
            return self._exact(exact)
        match node:
            case n.Symbol(name):
                raise OpenError(f"{name} has no value")
            case n.Constant("pi"):
                return +self.iv.pi
            case n.Constant("e"):
                return +self.iv.e
            case n.Constant("i"):
                return self.iv.mpc(0, 1)
            case n.Negation(of):
                return -self._value(of, point)
            case n.Sum(parts):
                return sum((self._value(part, point) for part in parts), self.iv.mpf(0))
            case n.Product(parts):
                total = self.iv.mpf(1)
                for part in parts:
                    total = self._checked(total * self._value(part, point))
                return total
            case n.Quotient(above, below):
                return self._value(above, point) / self._nonzero(self._value(below, point))
            case n.Power(base, exponent):
                return self._power(base, exponent, point)
            case n.FunctionCall(name, arguments):
                return self._call(name, arguments, point)
            case n.Number():
                raise AssertionError("numbers are rational")

    def _nonzero(self, found: Interval) -> Interval:
        if contains_zero(found):
            raise OpenError("not known to differ from zero")
        return found

    def _power(self, base: n.Expression, exponent: n.Expression, point: Mapping[str, Fraction]) -> Interval:
        whole = rational(exponent, point)
        if isinstance(base, n.Constant) and base.name == "e":
            return self._exp(self._value(exponent, point))
        under = self._value(base, point)
        if whole is not None and whole.denominator == 1:
            if abs(whole) > MAX_EXPONENT:
                raise OpenError("too large to enclose")
            if whole < 0:
                self._nonzero(under)
            return under**whole.numerator
        if whole == Fraction(1, 2):
            return self._sqrt(under)
        return self._exp(self._value(exponent, point) * self._log(under))

    def _exp(self, found: Interval) -> Interval:
        size = found.real if isinstance(found, self.iv.mpc) else found
        if abs(size).b > MAX_EXPONENT:
            raise OpenError("too large to enclose")
        return self.iv.exp(found)

    def _log(self, found: Interval) -> Interval:
        """Returns an interval that encloses the principal logarithm. Raises OpenError if the argument may be 0 or on
        both sides of the cut."""
        self._nonzero(found)
        if isinstance(found, self.iv.mpc):
            if found.imag.a <= 0 <= found.imag.b and found.real.a <= 0:
                if found.imag.a == 0 == found.imag.b and found.real.b < 0:
                    return self._log(found.real)
                raise OpenError("too close to the cut of the logarithm")
            return self.iv.log(found)
        if found.b < 0:
            return self.iv.mpc(self.iv.log(-found), self.iv.pi)
        return self.iv.log(found)

    def _sqrt(self, found: Interval) -> Interval:
        if isinstance(found, self.iv.mpc):
            return self._exp(self._log(found) / 2)
        if found.b < 0:
            return self.iv.mpc(0, self.iv.sqrt(-found))
        return self.iv.sqrt(found)

    def _call(self, name: str, arguments: tuple[n.Expression, ...], point: Mapping[str, Fraction]) -> Interval:
        values = [self._value(argument, point) for argument in arguments]
        first = values[0]
        match name:
            case "sqrt":
                return self._sqrt(first)
            case "cbrt" | "root":
                degree = values[1] if name == "root" else self.iv.mpf(3)
                rooted = rational(arguments[1], point) if name == "root" else Fraction(3)
                if rooted is None or rooted.denominator != 1 or rooted <= 0:
                    raise GrammarError("a root whose degree is not 1, 2, 3, ...")
                if not isinstance(first, self.iv.mpc) and first.b < 0 and rooted % 2 == 1:
                    return -self._exp(self._log(-first) / degree)
                return self._exp(self._log(first) / degree)
            case "exp":
                return self._exp(first)
            case "ln":
                return self._log(first)
            case "log":
                return self._log(first) / self._nonzero(self._log(values[1]))
            case "sin" | "cos":
                return self._circular(name, first)
            case "tan" | "cot" | "sec" | "csc":
                sine, cosine = self._circular("sin", first), self._circular("cos", first)
                one = self.iv.mpf(1)
                above = {"tan": sine, "cot": cosine}.get(name, one)
                return above / self._nonzero(sine if name in ("cot", "csc") else cosine)
            case "sinh" | "cosh" | "tanh":
                up, down = self._exp(first), self._exp(-first)
                if name == "tanh":
                    return (up - down) / self._nonzero(up + down)
                return (up - down if name == "sinh" else up + down) / 2
            case "conj":
                return self.iv.mpc(first.real, -first.imag) if isinstance(first, self.iv.mpc) else first
            case "arg":
                return self._argument(first)
        if any(isinstance(value, self.iv.mpc) for value in values) and name != "abs":
            raise OpenError(f"{name} of a number that is not real")
        match name:
            case "abs":
                return abs(first)
            case "sign":
                return self.iv.mpf(1 if self._nonzero(first).a > 0 else -1)
            case "min" | "max":
                choose = min if name == "min" else max
                return self.iv.mpf([choose(value.a for value in values), choose(value.b for value in values)])
            case "atan":
                return self._angle(first, self.iv.mpf(1))
            case "asin":
                return self._angle(first, self.iv.sqrt(1 - first * first))
            case "acos":
                return self._angle(self.iv.sqrt(1 - first * first), first)
            case "floor" | "ceil":
                return self._rounded(name, first)
            case "zeta":
                return self._zeta(first)
            case _:
                raise OpenError(f"{name} is only computed for rational numbers")

    def _zeta(self, at: Interval) -> Interval:
        """Returns an interval that encloses zeta of a number above 1, by Borwein's second algorithm (1995) and its
        error bound. Raises OpenError elsewhere."""
        if not at.a > 1:
            raise OpenError("zeta is only enclosed above 1")
        size = math.ceil(self.iv.dps * 1.4) + 5
        weights = list(
            itertools.accumulate(
                size * math.factorial(size + k - 1) * 4**k // (math.factorial(size - k) * math.factorial(2 * k))
                for k in range(size + 1)
            )
        )
        total = self.iv.mpf(0)
        for k in range(size):
            total += (-1) ** k * (weights[k] - weights[size]) * self.iv.exp(-at * self.iv.log(self.iv.mpf(k + 1)))
        scale = 1 - self.iv.exp((1 - at) * self.iv.log(self.iv.mpf(2)))
        error = 3 / (3 + self.iv.sqrt(self.iv.mpf(8))) ** size
        return (-total / weights[size] + error * self.iv.mpf([-1, 1])) / scale

    def _angle(self, y: Interval, x: Interval) -> Interval:
        """Returns an interval that encloses `atan2(y, x)`, slightly widened: mpmath rounds the ends to nearest."""
        slack = self.iv.mpf(2) ** (4 - self.iv.prec)
        return self.iv.atan2(y, x) * (1 + slack * self.iv.mpf([-1, 1]))

    def _argument(self, found: Interval) -> Interval:
        """Returns an interval that encloses a complex number's principal argument. Raises OpenError if the number may
        be 0 or on both sides of the cut."""
        if not isinstance(found, self.iv.mpc):
            return self.iv.mpf(0) if self._nonzero(found).a > 0 else +self.iv.pi
        if found.imag.a <= 0 <= found.imag.b and not found.real.a > 0:
            raise OpenError("too close to the cut of the argument")
        return self._angle(found.imag, found.real)

    def _circular(self, name: str, found: Interval) -> Interval:
        if isinstance(found, self.iv.mpc) and abs(found.imag).b > MAX_EXPONENT:
            raise OpenError("too large to enclose")
        return getattr(self.iv, name)(found)

    def _rounded(self, name: str, found: Interval) -> Interval:
        ends = as_fraction(found.a), as_fraction(found.b)
        low, high = map(math.floor, ends)
        if low != high or any(end.denominator == 1 for end in ends):
            raise OpenError("too close to a whole number")
        return self.iv.mpf(low if name == "floor" else low + 1)


def as_fraction(end: Any) -> Fraction:
    """Converts an interval's endpoint, a binary float, to an exact fraction."""
    sign, mantissa, exponent, _ = end._mpi_[0]
    value = Fraction(int(mantissa)) * Fraction(2) ** int(exponent)
    return -value if sign else value


def certainly_unreal(value: Interval) -> bool:
    return hasattr(value, "_mpci_") and not value.imag.a <= 0 <= value.imag.b


def contains_zero(value: Interval) -> bool:
    parts = (value.real, value.imag) if hasattr(value, "_mpci_") else (value,)
    return all(part.a <= 0 <= part.b for part in parts)


def apart(first: Interval, second: Interval) -> bool:
    """True if two enclosing intervals are disjoint, so that the enclosed values differ. False proves nothing."""

    def parts(value: Interval) -> tuple[Any, Any]:
        return (value.real, value.imag) if hasattr(value, "_mpci_") else (value, value * 0)

    return any(bool(a.b < b.a or b.b < a.a) for a, b in zip(parts(first), parts(second), strict=True))
