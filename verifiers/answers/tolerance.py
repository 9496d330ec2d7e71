"""Tolerances for decimals, decided by interval enclosures, never by floating point.

A tolerance applies to numbers, and to the coefficients of an expression or equation. Signs, whole exponents and
coefficients of one are exact. A tolerance that would accept zero, or the opposite sign, is refused as a bad spec.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction

from verifiers.answers.algebra.equality import EqualityFinding, Truth, different, equal, undecided
from verifiers.answers.algebra.rewriting import opaque_as_symbols
from verifiers.answers.algebra.scalars import Scalars
from verifiers.answers.grammar import nodes as n
from verifiers.answers.grammar.nodes import ONE, Expression, FunctionCall, Number, Product, minus, symbols
from verifiers.answers.grammar.rational import folded, rational
from verifiers.answers.grammar.traverse import expressions, values
from verifiers.answers.grammar.values import Images, Piecewise, Value
from verifiers.contract.errors import SpecError

MAX_TERMS = 60
MAX_EXPANDED_POWER = 6


class TooManyTermsError(Exception):
    """An expression has too many terms to compare them within a tolerance."""


Key = frozenset[tuple[Expression, int]]
"""Factors with symbols, and their whole powers; empty for a constant term."""
Terms = Mapping[Key, Expression]
"""Coefficient of each product of factors."""
Pair = tuple[Key, Expression, Expression]


WRITTEN = re.compile(r"(?:[0-9]{1,20}(?:\.[0-9]{1,40})?|\.[0-9]{1,40})(?:[eE][+-]?[0-9]{1,3})?|[0-9]{1,20}/[0-9]{1,20}")
MOST_RELATIVE = Fraction(1, 10)


def number(text: str, name: str) -> Fraction | None:
    """Parses a tolerance such as `0.001` or `1/1000`; None for an empty or zero one. Raises SpecError for other texts,
    or if it is too large."""
    if not text.strip():
        return None
    if not WRITTEN.fullmatch(text.strip()):
        raise SpecError(
            f"the {name} tolerance is not a number", hint="Write it exactly: 0.001, 1/1000 or 1e-3; not nan or inf."
        )
    try:
        value = Fraction(text.strip())
    except ZeroDivisionError as error:
        raise SpecError(f"the {name} tolerance divides by zero", hint="Write it as 0.001 or 1/1000.") from error
    if value == 0:
        return None
    if name == "relative" and value > MOST_RELATIVE:
        raise SpecError("a relative tolerance of more than 1/10 accepts too much", hint="Use 1/100 or less.")
    return value


@dataclass(frozen=True)
class Tolerance:
    absolute: Fraction | None
    relative: Fraction | None

    def judge(self, answer: Expression, expected: Expression, scalars: Scalars) -> EqualityFinding | None:
        """Returns the finding `equal` if two constants agree within the tolerance. Returns None if they do not, if that
        is undecided, or if either has symbols."""
        if symbols(answer, expected):
            return None
        apart = FunctionCall("abs", (minus(answer, expected),))
        for name, bound, unit in (
            ("absolute", self.absolute, ONE),
            ("relative", self.relative, FunctionCall("abs", (expected,))),
        ):
            order = None if bound is None else scalars.order(apart, Product((Number(bound), unit)))
            if order is not None and order <= 0:
                return equal(f"within the {name} tolerance")
        return None

    def judge_terms(
        self, answer: Expression, expected: Expression, scalars: Scalars, *, equation: bool = False, sign: int = 0
    ) -> EqualityFinding:
        """Compares two expressions term by term, each coefficient within the tolerance.

        With `equation`, a constant factor of all terms does not matter; `sign` is the sign that it must have, or 0."""
        pair = opaque_as_symbols(answer, expected)
        if not pair.alike:
            return undecided("they use different values of an unknown function")
        try:
            first, second = terms(pair.first), terms(pair.second)
        except TooManyTermsError:
            return undecided("too many terms to compare within the tolerance")
        known = first.keys() == second.keys()
        pairs = self._paired(first, second, scalars)
        if pairs is None:
            if all(map(_is_polynomial, (*first, *second))):
                return different("not the same terms")
            return undecided("not the same terms as the expected answer, whose tolerance is for its coefficients")
        for factor in _factors(pairs, scalars) if equation else (ONE,):
            if sign and scalars.sign(factor) != sign:
                continue
            scaled = ((key, folded(Product((factor, one))), other) for key, one, other in pairs)
            if all(self._fits(key, one, other, scalars) for key, one, other in scaled):
                return scalars.if_safe(equal("each coefficient within the tolerance"), pair)
        beyond = "a coefficient is beyond the tolerance"
        return different(beyond) if known else undecided(beyond)

    def _fits(self, key: Key, answer: Expression, expected: Expression, scalars: Scalars) -> bool:
        if scalars.compare(answer, expected).truth is Truth.EQUAL:
            return True
        return not (key and _is_unit(expected)) and self.judge(answer, expected, scalars) is not None

    def _paired(self, first: Terms, second: Terms, scalars: Scalars) -> list[Pair] | None:
        """Pairs the terms of two expressions by their factors with symbols. Returns None unless all have a partner."""
        pairs: list[Pair] = []
        rest = dict(first)
        for key, expected in second.items():
            partner = key if key in rest else next((one for one in rest if self._alike(one, key, scalars)), None)
            if partner is None:
                return None
            pairs.append((key, rest.pop(partner), expected))
        return None if rest else pairs

    def _alike(self, first: Key, second: Key, scalars: Scalars) -> bool:
        """True if two products have the same factors, up to constants within their arguments, bases and exponents."""
        if len(first) != len(second):
            return False
        left = dict(first)
        for atom, power in second:
            partner = next((one for one in left if left[one] == power and self._atoms(one, atom, scalars)), None)
            if partner is None:
                return False
            del left[partner]
        return True

    def _atoms(self, first: Expression, second: Expression, scalars: Scalars) -> bool:
        match first, second:
            case n.Power(base, exponent), n.Power(other, wanted):
                parts = [(base, other), (exponent, wanted)]
            case FunctionCall(name, arguments), FunctionCall(other_name, others) if (
                name == other_name and len(arguments) == len(others) and name not in n.BINDERS
            ):
                parts = list(zip(arguments, others, strict=True))
            case (n.Sum(), n.Sum()):
                parts = [(first, second)]
            case _:
                return first == second
        return all(
            (scalars.compare(one, other) if _is_whole(other) else self.judge_terms(one, other, scalars)).truth
            is Truth.EQUAL
            for one, other in parts
        )

    def check(self, expected: Value, scalars: Scalars, *, prove: bool) -> None:
        """Raises SpecError if the tolerance has no meaning for an expected answer, or accepts too much. Without `prove`
        only rational numbers are examined."""
        kinds = {type(part) for part in values(expected)}
        for kind, name in ((Images, "a family of values"), (Piecewise, "values by cases")):
            if kind in kinds:
                raise SpecError(
                    f"the tolerance: it has no meaning for {name}", hint="Leave it out, or expect one number or set."
                )
        for node in expressions(expected):
            for constant in coefficients(opaque_as_symbols(node, node).first):
                if prove or rational(constant) is not None:
                    self._check_constant(constant, scalars)

    def _check_constant(self, expected: Expression, scalars: Scalars) -> None:
        """Raises SpecError if the absolute tolerance exceeds half of an expected constant, and so accepts too much."""
        if self.absolute is None:
            return
        size = FunctionCall("abs", (expected,))
        most = ONE if scalars.sign(expected) == 0 else Product((Number(Fraction(1, 2)), size))
        order = scalars.order(Number(self.absolute), most)
        if order is None or order > 0:
            raise SpecError(
                "the absolute tolerance is more than half of the expected value: it accepts too much",
                hint="Choose one that only forgives rounding.",
            )


def _is_unit(node: Expression) -> bool:
    return folded(node) in (ONE, n.number(-1))


def _is_polynomial(key: Key) -> bool:
    return all(isinstance(atom, n.Symbol) and power > 0 for atom, power in key)


def _factors(pairs: list[Pair], scalars: Scalars) -> Iterator[Expression]:
    """Yields constants by which an equation may be multiplied: those that make one of its coefficients exact, those of
    one first."""
    for _, answer, expected in sorted(pairs, key=lambda pair: not _is_unit(pair[2])):
        if scalars.compare(answer, n.ZERO).truth is Truth.DIFFERENT:
            yield folded(n.Quotient(expected, answer))


def terms(node: Expression) -> Terms:
    """Expands an expression into products of factors with symbols, and their constant coefficients. Raises
    TooManyTermsError if there are too many."""
    found: dict[Key, Expression] = {}
    for key, coefficient in _expanded(node):
        found[key] = folded(n.Sum((found[key], coefficient))) if key in found else coefficient
    return {key: coefficient for key, coefficient in found.items() if coefficient != n.ZERO}


def _expanded(node: Expression) -> list[tuple[Key, Expression]]:
    if not symbols(node):
        return [(frozenset(), folded(node))]
    match node:
        case n.Negation(of):
            return [(key, folded(n.Negation(coefficient))) for key, coefficient in _expanded(of)]
        case n.Sum(parts):
            return [term for part in parts for term in _expanded(part)]
        case Product(parts):
            return _multiplied([_expanded(part) for part in parts])
        case n.Quotient(above, below):
            return _multiplied([_expanded(above), _inverse(_expanded(below), below)])
        case n.Power(base, Number(value)) if value.denominator == 1 and 0 < value <= MAX_EXPANDED_POWER:
            return _multiplied([_expanded(base)] * value.numerator)
        case n.Power(base, Number(value)) if value.denominator == 1 and value < 0:
            return _inverse(_expanded(n.Power(base, Number(-value))), n.Power(base, Number(-value)))
        case n.Power(base, n.Negation(Number(value))):
            return _expanded(n.Power(base, Number(-value)))
        case FunctionCall("exp", (of,)):
            return [(frozenset({(n.Power(n.Constant("e"), of), 1)}), ONE)]
        case _:
            return [(frozenset({(node, 1)}), ONE)]


def _inverse(below: list[tuple[Key, Expression]], node: Expression) -> list[tuple[Key, Expression]]:
    if len(below) != 1:
        return [(frozenset({(node, -1)}), ONE)]
    ((key, coefficient),) = below
    return [(frozenset((atom, -power) for atom, power in key), folded(n.Quotient(ONE, coefficient)))]


def _multiplied(parts: list[list[tuple[Key, Expression]]]) -> list[tuple[Key, Expression]]:
    total: list[tuple[Key, Expression]] = [(frozenset(), ONE)]
    for part in parts:
        if len(total) * len(part) > MAX_TERMS:
            raise TooManyTermsError
        total = [_product(one, other) for one, other in itertools.product(total, part)]
    return total


def _product(first: tuple[Key, Expression], second: tuple[Key, Expression]) -> tuple[Key, Expression]:
    powers = dict(first[0])
    for atom, power in second[0]:
        powers[atom] = powers.get(atom, 0) + power
    key = frozenset((atom, power) for atom, power in powers.items() if power)
    return key, folded(Product((first[1], second[1])))


def coefficients(node: Expression) -> Iterator[Expression]:
    """Yields the constants of an expression that a tolerance applies to."""
    try:
        found = terms(node)
    except TooManyTermsError:
        return
    for key, coefficient in found.items():
        if not (key and _is_unit(coefficient)):
            yield coefficient
        for atom, _ in key:
            for part in () if isinstance(atom, n.Symbol) else n.children(atom):
                if symbols(part) or not _is_whole(part):
                    yield from coefficients(part)


def _is_whole(node: Expression) -> bool:
    inside = node.of if isinstance(node, n.Negation) else node
    return isinstance(inside, Number) and inside.value.denominator == 1
