"""Solves equations and inequalities in one symbol.

An equation between rational functions becomes its roots, complex ones included. An inequality becomes a set of real
numbers: it is cut at all points where its truth can change (zeros of numerator, denominator and contents of absolute
values), and then decided at each cut and inside each gap. Redundant cuts do no harm.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Sequence
from fractions import Fraction
from functools import reduce
from typing import Any

from verifiers.answers.algebra.equality import Truth
from verifiers.answers.algebra.intervals import OpenError
from verifiers.answers.algebra.real_sets import RealSet, UndecidedError, ordered_cuts
from verifiers.answers.algebra.scalars import Scalars
from verifiers.answers.grammar import nodes as n
from verifiers.answers.grammar.errors import GrammarError
from verifiers.answers.grammar.nodes import HOLDS, ONE, TWO, ZERO, minus, number, replaced, substitute, symbols, walk
from verifiers.answers.grammar.rational import folded, rational

MAX_DEGREE = 40
MAX_ABSOLUTE = 4

Coefficients = tuple[n.Expression, ...]
"""Coefficients of 1, x, x^2, ..."""
PolynomialRatio = tuple[Coefficients, Coefficients]
UNITY: PolynomialRatio = (ONE,), (ONE,)


def fraction_of(node: n.Expression, name: str) -> PolynomialRatio:
    """Returns an expression's numerator and denominator as polynomials in one symbol. Raises UndecidedError if it is
    not a rational function of it."""
    if name not in symbols(node):
        return (node,), (ONE,)
    match node:
        case n.Symbol():
            return (ZERO, ONE), (ONE,)
        case n.Negation(of):
            above, below = fraction_of(of, name)
            return _times(above, (number(-1),)), below
        case n.Sum(parts):
            return reduce(_added, (fraction_of(part, name) for part in parts))
        case n.Product(parts):
            return reduce(_multiplied, (fraction_of(part, name) for part in parts))
        case n.Quotient(first, second):
            return _multiplied(fraction_of(first, name), fraction_of(second, name)[::-1])
        case n.Power(base, exponent):
            whole = None if symbols(exponent) else rational(exponent)
            if whole is None or whole.denominator != 1 or abs(whole) > MAX_DEGREE:
                raise UndecidedError("a power that is not whole")
            above, below = fraction_of(base, name)
            factor = (above, below) if whole > 0 else (below, above)
            return reduce(_multiplied, [factor] * abs(whole.numerator), UNITY)
        case n.FunctionCall("percent", (of,)):
            above, below = fraction_of(of, name)
            return above, _times(below, (number(100),))
        case _:
            raise UndecidedError("more than a rational function")


def _added(first: PolynomialRatio, second: PolynomialRatio) -> PolynomialRatio:
    (above, below), (over, under) = first, second
    return _plus(_times(above, under), _times(over, below)), _times(below, under)


def _multiplied(first: PolynomialRatio, second: PolynomialRatio) -> PolynomialRatio:
    return _times(first[0], second[0]), _times(first[1], second[1])


def _plus(first: Coefficients, second: Coefficients) -> Coefficients:
    return tuple(folded(n.Sum((a, b))) for a, b in itertools.zip_longest(first, second, fillvalue=ZERO))


def _times(first: Coefficients, second: Coefficients) -> Coefficients:
    if len(first) + len(second) > MAX_DEGREE + 2:
        raise UndecidedError("too high a degree")
    found: list[n.Expression] = [ZERO] * (len(first) + len(second) - 1)
    for (i, a), (j, b) in itertools.product(enumerate(first), enumerate(second)):
        if a != ZERO and b != ZERO:
            found[i + j] = folded(n.Sum((found[i + j], n.Product((a, b)))))
    return tuple(found)


def trimmed(of: Coefficients, scalars: Scalars) -> Coefficients:
    """Drops the leading zero coefficients of a polynomial. Raises UndecidedError if it is not proven which ones are
    zero."""
    found = list(of)
    while found:
        truth = scalars.compare(found[-1], ZERO).truth
        if truth is Truth.OPEN:
            raise UndecidedError("a coefficient may be zero")
        if truth is Truth.DIFFERENT:
            break
        found.pop()
    return tuple(found)


def roots(of: Coefficients, scalars: Scalars, *, real: bool) -> list[n.Expression]:
    """Returns the roots of a polynomial, complex or only real ones; some may repeat. Raises UndecidedError if it cannot
    solve it, or if the polynomial is zero everywhere."""
    found = trimmed(of, scalars)
    if not found:
        raise UndecidedError("it holds everywhere")
    match found:
        case (_,):
            return []
        case (c, b):
            return [folded(n.Quotient(n.Negation(c), b))]
        case (c, b, a):
            return _quadratic(a, b, c, scalars, real)
    lowest = next(index for index, coefficient in enumerate(found) if coefficient != ZERO)
    if lowest:
        return [ZERO, *roots(found[lowest:], scalars, real=real)]
    if all(coefficient == ZERO for coefficient in found[1:-1]) and real:
        return _pure(found, scalars)
    return _factored(found, scalars, real)


def _quadratic(a: n.Expression, b: n.Expression, c: n.Expression, scalars: Scalars, real: bool) -> list[n.Expression]:
    discriminant = folded(minus(n.Power(b, TWO), n.Product((number(4), a, c))))
    sign = scalars.sign(discriminant)
    if real and sign is None:
        raise UndecidedError("the sign of a discriminant is undecided")
    if real and sign == -1:
        return []
    twice = folded(n.Product((TWO, a)))
    if sign == 0:
        return [folded(n.Quotient(n.Negation(b), twice))]
    root = folded(n.FunctionCall("sqrt", (discriminant,)))
    return [
        folded(n.Quotient(n.Sum((n.Negation(b), root)), twice)),
        folded(n.Quotient(minus(n.Negation(b), root), twice)),
    ]


def _pure(of: Coefficients, scalars: Scalars) -> list[n.Expression]:
    """Returns the real roots of a polynomial a x^n + c."""
    degree = len(of) - 1
    under = folded(n.Quotient(n.Negation(of[0]), of[-1]))
    sign = scalars.sign(under)
    if sign is None:
        raise UndecidedError("the sign under a root is undecided")
    if degree % 2 == 0:
        if sign < 0:
            return []
        root = folded(n.FunctionCall("root", (under, number(degree))))
        return [root, folded(n.Negation(root))]
    positive = folded(n.Negation(under)) if sign < 0 else under
    root = folded(n.FunctionCall("root", (positive, number(degree))))
    return [folded(n.Negation(root)) if sign < 0 else root]


def _factored(of: Coefficients, scalars: Scalars, real: bool) -> list[n.Expression]:
    import sympy

    if not all(isinstance(coefficient, n.Number) for coefficient in of):
        raise UndecidedError("a polynomial of high degree with irrational coefficients")
    unknown = sympy.Dummy()
    values = [sympy.Rational(c.value) for c in reversed(of) if isinstance(c, n.Number)]
    _, factors = sympy.Poly(values, unknown).factor_list()
    found: list[n.Expression] = []
    for factor, _ in factors:
        parts = tuple(_number(value) for value in reversed(factor.all_coeffs()))
        if len(parts) > 3:
            pure = all(part == ZERO for part in parts[1:-1])
            if real and factor.count_roots() == 0:
                continue
            if not (real and pure):
                raise UndecidedError("a polynomial that does not factor into quadratics")
        found.extend(roots(parts, scalars, real=real))
    return found


def _number(value: Any) -> n.Number:
    return n.Number(Fraction(int(value.p), int(value.q)))


def equation_roots(first: n.Expression, second: n.Expression, name: str, scalars: Scalars) -> list[n.Expression]:
    """Returns all complex solutions of an equation between rational functions of one symbol. Raises UndecidedError if
    they are not found."""
    found = list(zeros(scalars.read(minus(first, second)), name, scalars, real=False))
    if any(truth is Truth.OPEN for _, truth in found):
        raise UndecidedError("a denominator may be zero")
    return [root for root, truth in found if truth is Truth.DIFFERENT]


def zeros(of: n.Expression, name: str, scalars: Scalars, *, real: bool) -> Iterator[tuple[n.Expression, Truth]]:
    """Yields the roots of a rational function's numerator; each comes with EQUAL if the denominator is zero there, too.
    Raises UndecidedError if the roots are not found."""
    above, below = fraction_of(of, name)
    for root in roots(above, scalars, real=real):
        yield root, scalars.compare(_at(below, root), ZERO).truth


def _at(of: Coefficients, point: n.Expression) -> n.Expression:
    terms = [n.Product((c, n.Power(point, number(i)))) if i else c for i, c in enumerate(of) if c != ZERO or i == 0]
    return folded(n.Sum(tuple(terms))) if len(terms) > 1 else terms[0]


def inequality_set(comparison: n.ComparisonNode, name: str, scalars: Scalars) -> RealSet:
    """Returns the set of real values of a symbol that satisfy a comparison. Raises UndecidedError if they are not
    found."""
    cuts: list[n.Expression] = []
    pairs = list(zip(comparison.operands, comparison.relations, comparison.operands[1:], strict=False))
    for first, _, second in pairs:
        cuts.extend(_cuts(scalars.read(minus(first, second)), name, scalars))
    ordered = ordered_cuts(cuts, scalars)
    samples = _samples(ordered, scalars)
    at = tuple(_true(pairs, name, cut, scalars) is True for cut in ordered)
    gaps = [_true(pairs, name, n.Number(sample), scalars) for sample in samples]
    if None in gaps:
        # Points inside a gap are alike, except where a form such as x^0 is undefined.
        raise UndecidedError("no value where one was expected")
    return RealSet("real", ordered, at, tuple(gap is True for gap in gaps))


def absolutes(node: n.Expression, name: str, functions: Collection[str] = ("abs",)) -> list[n.FunctionCall]:
    """Returns the subexpressions |u|, or other calls, of an expression that contain a symbol, the smallest first."""
    calls = (part for part in walk(node) if isinstance(part, n.FunctionCall) and part.function in functions)
    return sorted((part for part in calls if name in symbols(part)), key=lambda part: sum(1 for _ in walk(part)))


def _cuts(node: n.Expression, name: str, scalars: Scalars) -> list[n.Expression]:
    ordered = list(dict.fromkeys(absolutes(node, name)))[::-1]
    if len(ordered) > MAX_ABSOLUTE:
        raise UndecidedError("too many absolute values")
    found: list[n.Expression] = []
    for absolute in ordered:
        found.extend(_cuts(absolute.arguments[0], name, scalars))
    for signs in itertools.product((1, -1), repeat=len(ordered)):
        changed = node
        for absolute, sign in zip(ordered, signs, strict=True):
            inside = absolute.arguments[0]
            changed = replaced(changed, absolute, inside if sign > 0 else n.Negation(inside))
        above, below = fraction_of(changed, name)
        for part in (above, below):
            if trimmed(part, scalars):
                found.extend(roots(part, scalars, real=True))
    return found


def _samples(cuts: Sequence[n.Expression], scalars: Scalars) -> list[Fraction]:
    """Returns a rational number from each gap between sorted cuts, from below the first and from above the last. Raises
    UndecidedError if two cuts are too close."""
    if not cuts:
        return [Fraction(0)]
    try:
        bounds = [_bounds(cut, scalars) for cut in cuts]
    except OpenError as error:
        raise UndecidedError("the size of a cut is undecided") from error
    middles: list[Fraction] = []
    for (_, below), (above, _) in itertools.pairwise(bounds):
        if below >= above:
            raise UndecidedError("two cuts are too close")
        middles.append((below + above) / 2)
    return [bounds[0][0] - 1, *middles, bounds[-1][1] + 1]


def _bounds(cut: n.Expression, scalars: Scalars) -> tuple[Fraction, Fraction]:
    value = rational(cut)
    return (value, value) if value is not None else scalars.enclosed(cut)


def _true(
    pairs: list[tuple[n.Expression, n.Relation, n.Expression]], name: str, point: n.Expression, scalars: Scalars
) -> bool | None:
    """True if all comparisons hold where a symbol has the value `point`; None if a side has no value there. Raises
    UndecidedError if the order of two sides is not proven."""
    for first, relation, second in pairs:
        try:
            left, right = (substitute(side, {name: point}) for side in (first, second))
            order = scalars.order(left, right)
        except GrammarError:
            return None
        if order is None:
            raise UndecidedError("undecided at a point")
        if not HOLDS[relation](order, 0):
            return False
    return True
