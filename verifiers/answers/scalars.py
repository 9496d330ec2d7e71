"""Whether two expressions are equal: the whole way, from exact arithmetic to SymPy.

In this order: exact rational numbers; values modulo primes and sizes for what is too large to compute; enclosures at
fixed points and at points drawn from the seed, which prove a difference; normal forms and then SymPy, which prove
equality. Equality needs a point at which both sides certainly have a value, too.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from verifiers.answers import magnitude, modular, normal
from verifiers.answers.calculus import UnresolvedError, resolved
from verifiers.answers.equality import Finding, Truth
from verifiers.answers.equality import points as fixed_points
from verifiers.answers.grammar.errors import GrammarError, TooLargeError
from verifiers.answers.grammar.nodes import (
    Call,
    Constant,
    Expression,
    Negation,
    Number,
    Product,
    Sum,
    substitute,
    symbols,
    walk,
)
from verifiers.answers.grammar.rational import rational
from verifiers.answers.intervals import DIGITS, OpenError, apart, as_fraction, enclosure
from verifiers.answers.rewriting import has_binder, opaque_as_symbols, plain

Domain = Literal["real", "complex", "positive", "integer"]

ZERO = Number(Fraction(0))
RANDOM_POINTS = 3
WHOLE_FUNCTIONS = frozenset({"factorial", "binomial", "gcd", "lcm", "mod", "floordiv"})
QUICK, PRECISE = DIGITS


@dataclass(frozen=True)
class Scalars:
    """Compares expressions for one spec. Deterministic: random points come from the seed."""

    seed: int
    domain: Domain = "real"
    prove: bool = True

    def compare(self, first: Expression, second: Expression) -> Finding:
        """Raises GrammarError where one of the two never has a value."""
        found = self._exactly(first, second)
        if found is not None:
            return found
        try:
            read = self.read(first), self.read(second)
            if read != (first, second):
                found = self._exactly(*read)
                if found is not None:
                    return found
            first, second = read
        except UnresolvedError as error:
            if first == second:
                return Finding(Truth.OPEN, f"the same text, but whether it has a value is open: {error}")
            return Finding(Truth.OPEN, str(error))
        found = self._compare(*opaque_as_symbols(first, second))
        if found.truth is Truth.DIFFERENT and (has_binder(first) or has_binder(second)):
            return Finding(Truth.OPEN, "a sum over a sequence that is not known")
        return found

    def _exactly(self, first: Expression, second: Expression) -> Finding | None:
        """Rational numbers of any size; None for anything else."""
        try:
            left, right = rational(first), rational(second)
        except TooLargeError:
            return self._huge(first, second)
        if left is None or right is None:
            return None
        if left == right:
            return Finding(Truth.EQUAL, "equal as exact rational numbers")
        return Finding(Truth.DIFFERENT, "different rational numbers")

    def read(self, node: Expression) -> Expression:
        """The same value without shorthands, sums, integrals and the like. Raises UnresolvedError, GrammarError."""
        return plain(resolved(node))

    def sign(self, node: Expression) -> int | None:
        """-1, 0 or 1 for a constant that is certainly real; None where that is open."""
        exact = rational(node)
        if exact is not None:
            return (exact > 0) - (exact < 0)
        try:
            node = self.read(node)
        except UnresolvedError:
            return None
        for digits in DIGITS:
            try:
                found = enclosure(digits).real(node)
            except OpenError:
                continue
            if found.a > 0:
                return 1
            if found.b < 0:
                return -1
        return 0 if self.compare(node, Number(Fraction(0))).truth is Truth.EQUAL else None

    def order(self, first: Expression, second: Expression) -> int | None:
        """The sign of the difference."""
        if first == second:
            return 0
        left, right = rational(first), rational(second)
        if left is not None and right is not None:
            return (left > right) - (left < right)
        return self.sign(Sum((first, Negation(second))))

    def enclosed(self, node: Expression) -> tuple[Fraction, Fraction]:
        """Rational bounds of a real constant. Raises OpenError."""
        try:
            found = enclosure(PRECISE).real(self.read(node))
        except (GrammarError, UnresolvedError) as error:
            raise OpenError(str(error)) from error
        return as_fraction(found.a), as_fraction(found.b)

    # -- what is behind `compare`

    def _compare(self, first: Expression, second: Expression) -> Finding:
        names = symbols(first) | symbols(second)
        whole = self.domain == "integer" or _counts(first) or _counts(second)
        defined = False
        for point in self.points(names, whole=whole):
            told_apart, both = self._look(first, second, point, QUICK)
            if told_apart:
                return _different(point)
            if both and not defined:
                defined = True
                if first == second:
                    return Finding(Truth.EQUAL, "the same expression")
                if self._same(first, second, whole):
                    return Finding(Truth.EQUAL, "the same normal form")
        for point in self.points(names, whole=whole):
            told_apart, both = self._look(first, second, point, PRECISE)
            if told_apart:
                return _different(point)
            defined = defined or both
        if not defined:
            return Finding(Truth.OPEN, "no point was found at which both certainly have a value")
        if self._same(first, second, whole):
            return Finding(Truth.EQUAL, "the same normal form")
        if not names and self._close(first, second) and normal.same_turn(first, second):
            return Finding(Truth.EQUAL, "they differ by a multiple of 2 pi, and by less than 1")
        if not self.prove:
            return Finding(Truth.OPEN, "no proof was attempted")
        from verifiers.answers.symbolic import proves_equal

        proof = proves_equal(first, second, self.domain)
        if proof is None:
            return Finding(Truth.OPEN, "neither equality nor a difference could be proved")
        return Finding(Truth.EQUAL, f"their difference is zero ({proof})")

    def _same(self, first: Expression, second: Expression, whole: bool) -> bool:
        positive = symbols(first) | symbols(second) if self.domain == "positive" else frozenset()
        return normal.same(first, second, positive, real=self.domain != "complex")

    def _close(self, first: Expression, second: Expression) -> bool:
        """Whether two constants are certainly real and certainly less than 1 apart."""
        try:
            found = enclosure(QUICK).real(Sum((first, Negation(second))))
        except (GrammarError, OpenError):
            return False
        return bool(found.a > -1 and found.b < 1)

    def _huge(self, first: Expression, second: Expression) -> Finding:
        """For two of which one has too many digits."""
        names = symbols(first) | symbols(second)
        if names:
            return Finding(Truth.OPEN, "too large to compute")
        witness = modular.told_apart(first, second) or magnitude.told_apart(first, second)
        if witness:
            return Finding(Truth.DIFFERENT, "too large to compute, but certainly different", witness)
        if modular.certainly_defined(first) and modular.certainly_defined(second):
            if first == second:
                return Finding(Truth.EQUAL, "the same expression")
            if normal.same(first, second):
                return Finding(Truth.EQUAL, "the same normal form")
        return Finding(Truth.OPEN, "too large to compute")

    def points(self, names: frozenset[str], *, whole: bool = False) -> Iterator[dict[str, Expression]]:
        """Fixed points first, then points drawn from the seed; complex ones where symbols are complex."""
        if not names:
            yield {}
            return
        draw = random.Random(self.seed)
        ordered = sorted(names)
        if whole:
            for start in (3, 5, 2, 8):
                yield {name: Number(Fraction(start + 2 * index)) for index, name in enumerate(ordered)}
            for _ in range(RANDOM_POINTS):
                yield {name: Number(Fraction(draw.randrange(1, 30))) for name in ordered}
            return
        for point in fixed_points(names):
            yield {name: Number(abs(value) if self.domain == "positive" else value) for name, value in point.items()}
        if self.domain == "real" and len(names) > 1:
            # All negative: where products of roots and sums of logarithms go wrong.
            yield {name: Number(Fraction(-7 - 3 * index, 4)) for index, name in enumerate(ordered)}
        for _ in range(RANDOM_POINTS):
            yield {name: self._random(draw) for name in ordered}

    def _random(self, draw: random.Random) -> Expression:
        low = 1 if self.domain == "positive" else -400
        real = Number(Fraction(draw.randrange(low, 400), draw.randrange(7, 97)))
        if self.domain != "complex":
            return real
        imaginary = Number(Fraction(draw.randrange(-400, 400), draw.randrange(7, 97)))
        return Sum((real, Product((imaginary, Constant("i")))))

    def _look(
        self, first: Expression, second: Expression, point: Mapping[str, Expression], digits: int
    ) -> tuple[bool, bool]:
        """(certainly different here, both certainly defined here). Raises GrammarError for constants without value."""
        held = enclosure(digits)
        values: list[Any] = []
        filled = [_filled(node, point) for node in (first, second)]
        try:
            left, right = (rational(*part) for part in filled)
        except GrammarError:
            left = right = None
        if left is not None and right is not None:
            return left != right, True
        for part in filled:
            try:
                values.append(held.value(*part))
            except OpenError:
                return False, False
            except GrammarError as error:
                if not point and not isinstance(error, TooLargeError):
                    raise
                return False, False
        return apart(values[0], values[1]), True


def _filled(node: Expression, point: Mapping[str, Expression]) -> tuple[Expression, dict[str, Fraction]]:
    known: dict[str, Fraction] = {}
    for name, value in point.items():
        if isinstance(value, Number):
            known[name] = value.value
        else:
            node = substitute(node, name, value)
    return node, known


def _different(point: Mapping[str, Expression]) -> Finding:
    return Finding(Truth.DIFFERENT, "their values differ", {name: shown(value) for name, value in point.items()})


def shown(value: Expression) -> str:
    """A coordinate of a point as text."""
    match value:
        case Number(of):
            return str(of)
        case Sum((Number(real), Product((Number(imaginary), _)))):
            return f"{real} + {imaginary}*i"
        case _:
            return "?"


def _counts(node: Expression) -> bool:
    """Whether a function that is for whole numbers only has a symbol inside."""
    return any(isinstance(part, Call) and part.function in WHOLE_FUNCTIONS and symbols(part) for part in walk(node))
