"""Decides whether two expressions are equal, from exact arithmetic to SymPy.

In this order: exact rational numbers; residues modulo primes and sizes for numbers too large to compute; enclosures at
fixed and seeded random points, which prove a difference; normal forms and then SymPy, which prove equality. Equality
also needs a point at which both sides certainly have a value.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from verifiers.answers.algebra import modular, normal
from verifiers.answers.algebra.calculus import UnresolvedError, resolved
from verifiers.answers.algebra.divisors import cancels_safely
from verifiers.answers.algebra.equality import EqualityFinding, Truth, different, equal, undecided
from verifiers.answers.algebra.intervals import DIGITS, OpenError, apart, as_fraction, certainly_unreal, enclosure
from verifiers.answers.algebra.rewriting import OpaquePair, opaque_as_symbols, plain
from verifiers.answers.algebra.sizes import differing_sizes
from verifiers.answers.grammar import nodes as n
from verifiers.answers.grammar.errors import GrammarError, TooLargeError
from verifiers.answers.grammar.nodes import ZERO, minus, number, substitute, symbols, walk
from verifiers.answers.grammar.rational import rational

Domain = Literal["real", "complex", "positive", "integer"]

COORDINATES = ("3/7", "-5/3", "17/11", "-1/13", "29/5", "-41/7", "1/97", "101/3", "-73/2")
"""Coordinates tried for free symbols: both signs, small and large, unlikely zeros of written expressions."""
FIXED_POINTS = 6
RANDOM_POINTS = 3
WHOLE_FUNCTIONS = frozenset({"factorial", "binomial", "gcd", "lcm", "mod", "floordiv"})
QUICK, PRECISE = DIGITS
IMAGINARY = n.Constant("i")


@dataclass(frozen=True)
class Scalars:
    """Comparison of expressions for one spec. Deterministic: random points come from the seed."""

    seed: int
    domain: Domain = "real"
    prove: bool = True

    def compare(self, first: n.Expression, second: n.Expression) -> EqualityFinding:
        """Decides if two expressions are proved equal, proved different or undecided. Raises GrammarError if one never
        has a value."""
        found = self._exactly(first, second)
        if found is not None:
            return found
        try:
            read = self.read(first), self.read(second)
        except UnresolvedError as error:
            if first == second:
                return undecided(f"the same text, but it may have no value: {error}")
            return undecided(str(error))
        if read != (first, second) and (found := self._exactly(*read)) is not None:
            return found
        pair = opaque_as_symbols(*read)
        found = self._compare(pair.first, pair.second)
        if (found.truth is Truth.DIFFERENT and not pair.certain) or not pair.alike:
            return undecided("it depends on unknown values of a function")
        return self.if_safe(found, pair)

    def if_safe(self, found: EqualityFinding, pair: OpaquePair) -> EqualityFinding:
        """Returns a finding, or that it is undecided if two equal expressions cancel what may be zero."""
        sides = pair.first, pair.second
        if found.truth is Truth.EQUAL and not cancels_safely(*sides, lambda: self._samples(*sides)):
            return undecided("what is cancelled may have no value: it may be a division by zero")
        return found

    def has_value(self, node: n.Expression) -> bool:
        """True if an expression is shown to have a value: a constant, or one with symbols at a sample point."""
        if isinstance(node, n.Number | n.Symbol) or modular.certainly_defined(node):
            return True
        try:
            node = self.read(node)
        except UnresolvedError:
            return False
        node = opaque_as_symbols(node, node).first
        return any(self._at_point(node, node, point, digits)[1] for point in self._samples(node) for digits in DIGITS)

    def _samples(self, *nodes: n.Expression) -> Iterator[dict[str, n.Expression]]:
        names = symbols(*nodes)
        return self.points(names, whole=bool(names) and (self.domain == "integer" or any(map(_counts, nodes))))

    def _exactly(self, first: n.Expression, second: n.Expression) -> EqualityFinding | None:
        """Compares two rational numbers exactly, even huge ones. Returns None if an expression is not a rational
        number."""
        try:
            left, right = rational(first), rational(second)
        except TooLargeError:
            return self._huge(first, second)
        if left is None or right is None:
            return None
        if left == right:
            return equal("equal as exact rational numbers")
        return different("different rational numbers")

    def read(self, node: n.Expression) -> n.Expression:
        """Evaluates an expression's sums, integrals and the like, and rewrites rarer functions by basic ones. Raises
        UnresolvedError if one cannot be evaluated, GrammarError if one has no value."""
        return plain(resolved(node), real=self.domain != "complex")

    def sign(self, node: n.Expression) -> int | None:
        """Returns the sign of a constant, -1, 0 or 1. None if its sign is not proven, or it may not be real."""
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
        return 0 if self.compare(node, ZERO).truth is Truth.EQUAL else None

    def order(self, first: n.Expression, second: n.Expression) -> int | None:
        """Returns the sign of `first` minus `second`, -1, 0 or 1. None if that sign is not proven."""
        if first == second:
            return 0
        left, right = rational(first), rational(second)
        if left is not None and right is not None:
            return (left > right) - (left < right)
        return self.sign(minus(first, second))

    def enclosed(self, node: n.Expression) -> tuple[Fraction, Fraction]:
        """Returns a rational lower and upper bound of a real constant. Raises OpenError if none is found."""
        try:
            found = enclosure(PRECISE).real(self.read(node))
        except (GrammarError, UnresolvedError) as error:
            raise OpenError(str(error)) from error
        return as_fraction(found.a), as_fraction(found.b)

    # -- what is behind `compare`

    def _compare(self, first: n.Expression, second: n.Expression) -> EqualityFinding:
        defined, aside = False, None
        for digits in DIGITS:
            for point in self._samples(first, second):
                differ, both, unreal = self._at_point(first, second, point, digits)
                if differ and unreal and self._are_real(first, second):
                    # Neither value is real here: not a difference if both are real elsewhere.
                    aside = aside or point
                    continue
                if differ:
                    at = {name: shown(value) for name, value in point.items()}
                    return different("their values differ", at)
                if both and not defined:
                    defined = True
                    if first == second:
                        return equal("the same expression")
                    if self._same(first, second):
                        return equal("the same normal form")
        if not defined and aside:
            return different("their values differ", {name: shown(value) for name, value in aside.items()})
        if not defined:
            return undecided("no point was found at which both certainly have a value")
        if not symbols(first, second) and self._close(first, second) and normal.same_turn(first, second):
            return equal("they differ by a multiple of 2 pi, and by less than 1")
        if not self.prove:
            return undecided("no proof was attempted")
        from verifiers.answers.algebra.symbolic import proves_equal, proves_equal_where_real

        proof = proves_equal(first, second, self.domain) or (
            proves_equal_where_real(first, second, self.domain) if self._are_real(first, second) else None
        )
        if proof is None:
            return undecided("neither equality nor a difference could be proved")
        return equal(f"their difference is zero ({proof})")

    def _are_real(self, *nodes: n.Expression) -> bool:
        """True if expressions contain symbols, the symbols stand for real numbers, and no expression contains i."""
        written = (part for node in nodes for part in walk(node))
        return self.domain != "complex" and bool(symbols(*nodes)) and IMAGINARY not in written

    def _same(self, first: n.Expression, second: n.Expression) -> bool:
        positive = symbols(first, second) if self.domain == "positive" else frozenset()
        return normal.same(first, second, positive, real=self.domain != "complex")

    def _close(self, first: n.Expression, second: n.Expression) -> bool:
        """True if two constants are proved real and less than 1 apart. False proves nothing."""
        try:
            found = enclosure(QUICK).real(minus(first, second))
        except (GrammarError, OpenError):
            return False
        return bool(found.a > -1 and found.b < 1)

    def _huge(self, first: n.Expression, second: n.Expression) -> EqualityFinding:
        """Compares two expressions with too many digits to compute, by residues modulo primes and by logarithms."""
        names = symbols(first, second)
        if names:
            return undecided("too large to compute")
        witness = modular.differing_residues(first, second) or differing_sizes(first, second)
        if witness:
            return different("too large to compute, but certainly different", witness)
        if modular.certainly_defined(first) and modular.certainly_defined(second):
            if first == second:
                return equal("the same expression")
            if normal.same(first, second):
                return equal("the same normal form")
        return undecided("too large to compute")

    def points(self, names: frozenset[str], *, whole: bool = False) -> Iterator[dict[str, n.Expression]]:
        """Yields sample values for symbols: fixed ones, then random ones drawn from the seed. Values are integers with
        `whole`, and may be complex where symbols are complex."""
        if not names:
            yield {}
            return
        ordered = sorted(names)
        if whole:
            for start in (3, 5, 2, 8):
                yield {name: number(start + 2 * index) for index, name in enumerate(ordered)}
            draw = random.Random(self.seed)
            for _ in range(RANDOM_POINTS):
                yield {name: number(draw.randrange(1, 30)) for name in ordered}
            return
        coordinates = itertools.cycle(map(Fraction, COORDINATES))
        for shift in range(FIXED_POINTS):
            values = {name: next(coordinates) + shift * index for index, name in enumerate(ordered)}
            yield {name: n.Number(abs(of) if self.domain == "positive" else of) for name, of in values.items()}
        if self.domain == "real" and len(names) > 1:
            # All negative: exposes wrong rules for products of roots and sums of logarithms.
            yield {name: n.Number(Fraction(-7 - 3 * index, 4)) for index, name in enumerate(ordered)}
        draw = random.Random(self.seed)
        for _ in range(RANDOM_POINTS):
            yield {name: self._random(draw) for name in ordered}

    def _random(self, draw: random.Random) -> n.Expression:
        low = 1 if self.domain == "positive" else -400
        real = n.Number(Fraction(draw.randrange(low, 400), draw.randrange(7, 97)))
        if self.domain != "complex":
            return real
        imaginary = n.Number(Fraction(draw.randrange(-400, 400), draw.randrange(7, 97)))
        return n.Sum((real, n.Product((imaginary, n.Constant("i")))))

    def _at_point(
        self, first: n.Expression, second: n.Expression, point: Mapping[str, n.Expression], digits: int
    ) -> tuple[bool, bool, bool]:
        """Evaluates two expressions at a point. Returns three flags: certainly different; both certainly have a value;
        both certainly not real. Raises GrammarError for constants without value."""
        known = {name: value.value for name, value in point.items() if isinstance(value, n.Number)}
        others = {name: value for name, value in point.items() if name not in known}
        sides = [substitute(node, others) for node in ((first,) if first == second else (first, second))]
        try:
            exact = [rational(side, known) for side in sides]
        except GrammarError:
            exact = [None]
        if None not in exact:
            return exact[0] != exact[-1], True, False
        held = enclosure(digits)
        values: list[Any] = []
        for side in sides:
            try:
                values.append(held.value(side, known))
            except OpenError:
                return False, False, False
            except GrammarError as error:
                if not point and not isinstance(error, TooLargeError):
                    raise
                return False, False, False
        return apart(values[0], values[-1]), True, all(map(certainly_unreal, values))


def shown(value: n.Expression) -> str:
    """Formats a coordinate of a sample point, a real or complex number."""
    match value:
        case n.Number(of):
            return str(of)
        case n.Sum((n.Number(real), n.Product((n.Number(imaginary), _)))):
            return f"{real} + {imaginary}*i"
        case _:
            return "?"


def _counts(node: n.Expression) -> bool:
    """True if an expression applies a function of whole numbers, such as a factorial, to an argument with symbols."""
    return any(
        isinstance(part, n.FunctionCall) and part.function in WHOLE_FUNCTIONS and symbols(part) for part in walk(node)
    )
