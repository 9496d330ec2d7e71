"""Solutions of equations and inequalities in one symbol.

An equation between rational functions becomes its roots, complex ones included. An inequality becomes a set of real
numbers: it is cut wherever its truth can change (zeros of numerator and denominator, and of what stands in absolute
values), and then decided at each cut and inside each gap. Cuts that change nothing do no harm.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from verifiers.answers.equality import Truth
from verifiers.answers.grammar.errors import GrammarError
from verifiers.answers.grammar.nodes import (
    Call,
    Comparison,
    Expression,
    Negation,
    Number,
    Power,
    Product,
    Quotient,
    Relation,
    Sum,
    Symbol,
    substitute,
    symbols,
    walk,
)
from verifiers.answers.grammar.rational import rational
from verifiers.answers.intervals import OpenError
from verifiers.answers.real_sets import RealSet, UndecidedError, combined, ordered_cuts
from verifiers.answers.scalars import Scalars

MAX_DEGREE = 40
MAX_ABSOLUTE = 4
ZERO, ONE = Number(Fraction(0)), Number(Fraction(1))

Coefficients = tuple[Expression, ...]
"""Of 1, x, x^2, ..."""


def number(value: Fraction | int) -> Number:
    return Number(Fraction(value))


def folded(node: Expression) -> Expression:
    """A number where it is rational."""
    value = rational(node)
    return node if value is None else Number(value)


def fraction_of(node: Expression, name: str) -> tuple[Coefficients, Coefficients]:
    """Numerator and denominator as polynomials in one symbol. Raises UndecidedError."""
    if name not in symbols(node):
        return (node,), (ONE,)
    match node:
        case Symbol():
            return (ZERO, ONE), (ONE,)
        case Negation(of):
            above, below = fraction_of(of, name)
            return _times(above, (number(-1),)), below
        case Sum(parts):
            above, below = fraction_of(parts[0], name)
            for part in parts[1:]:
                over, under = fraction_of(part, name)
                above, below = _plus(_times(above, under), _times(over, below)), _times(below, under)
            return above, below
        case Product(parts):
            above, below = fraction_of(parts[0], name)
            for part in parts[1:]:
                over, under = fraction_of(part, name)
                above, below = _times(above, over), _times(below, under)
            return above, below
        case Quotient(first, second):
            above, below = fraction_of(first, name)
            over, under = fraction_of(second, name)
            return _times(above, under), _times(below, over)
        case Power(base, exponent):
            whole = None if symbols(exponent) else rational(exponent)
            if whole is None or whole.denominator != 1 or abs(whole) > MAX_DEGREE:
                raise UndecidedError("a power that is not whole")
            above, below = fraction_of(base, name)
            if whole < 0:
                above, below = below, above
            over, under = (ONE,), (ONE,)
            for _ in range(abs(whole.numerator)):
                over, under = _times(over, above), _times(under, below)
            return over, under
        case Call("percent", (of,)):
            above, below = fraction_of(of, name)
            return above, _times(below, (number(100),))
        case _:
            raise UndecidedError("more than a rational function")


def _plus(first: Coefficients, second: Coefficients) -> Coefficients:
    return tuple(folded(Sum((a, b))) for a, b in itertools.zip_longest(first, second, fillvalue=ZERO))


def _times(first: Coefficients, second: Coefficients) -> Coefficients:
    if len(first) + len(second) > MAX_DEGREE + 2:
        raise UndecidedError("too high a degree")
    found: list[Expression] = [ZERO] * (len(first) + len(second) - 1)
    for (i, a), (j, b) in itertools.product(enumerate(first), enumerate(second)):
        if a != ZERO and b != ZERO:
            found[i + j] = folded(Sum((found[i + j], Product((a, b)))))
    return tuple(found)


def trimmed(of: Coefficients, scalars: Scalars) -> Coefficients:
    """Without leading zeros. Raises UndecidedError where it is open whether one is zero."""
    found = list(of)
    while found:
        truth = scalars.compare(found[-1], ZERO).truth
        if truth is Truth.OPEN:
            raise UndecidedError("whether a coefficient is zero is open")
        if truth is Truth.DIFFERENT:
            break
        found.pop()
    return tuple(found)


def roots(of: Coefficients, scalars: Scalars, *, real: bool) -> list[Expression]:
    """All roots, each once or more; with `real` those that are real. Raises UndecidedError; for zero itself, too."""
    found = trimmed(of, scalars)
    if not found:
        raise UndecidedError("it holds everywhere")
    match found:
        case (_,):
            return []
        case (c, b):
            return [folded(Quotient(Negation(c), b))]
        case (c, b, a):
            return _quadratic(a, b, c, scalars, real)
    lowest = next(index for index, coefficient in enumerate(found) if coefficient != ZERO)
    if lowest:
        return [ZERO, *roots(found[lowest:], scalars, real=real)]
    if all(coefficient == ZERO for coefficient in found[1:-1]) and real:
        return _pure(found, scalars)
    return _factored(found, scalars, real)


def _quadratic(a: Expression, b: Expression, c: Expression, scalars: Scalars, real: bool) -> list[Expression]:
    discriminant = folded(Sum((Power(b, number(2)), Negation(Product((number(4), a, c))))))
    sign = scalars.sign(discriminant)
    if real and sign is None:
        raise UndecidedError("the sign of a discriminant is open")
    if real and sign == -1:
        return []
    twice = folded(Product((number(2), a)))
    if sign == 0:
        return [folded(Quotient(Negation(b), twice))]
    root = folded(Call("sqrt", (discriminant,)))
    return [
        folded(Quotient(Sum((Negation(b), root)), twice)),
        folded(Quotient(Sum((Negation(b), Negation(root))), twice)),
    ]


def _pure(of: Coefficients, scalars: Scalars) -> list[Expression]:
    """Real roots of a x^n + c."""
    degree = len(of) - 1
    under = folded(Quotient(Negation(of[0]), of[-1]))
    sign = scalars.sign(under)
    if sign is None:
        raise UndecidedError("the sign under a root is open")
    if degree % 2 == 0:
        if sign < 0:
            return []
        root = folded(Call("root", (under, number(degree))))
        return [root, folded(Negation(root))]
    positive = folded(Negation(under)) if sign < 0 else under
    root = folded(Call("root", (positive, number(degree))))
    return [folded(Negation(root)) if sign < 0 else root]


def _factored(of: Coefficients, scalars: Scalars, real: bool) -> list[Expression]:
    import sympy

    if not all(isinstance(coefficient, Number) for coefficient in of):
        raise UndecidedError("a polynomial of high degree with irrational coefficients")
    unknown = sympy.Dummy()
    values = [sympy.Rational(c.value.numerator, c.value.denominator) for c in reversed(of) if isinstance(c, Number)]
    _, factors = sympy.Poly(values, unknown).factor_list()
    found: list[Expression] = []
    for factor, _ in factors:
        parts = tuple(_number(value) for value in reversed(factor.all_coeffs()))
        if len(parts) > 3:
            pure = all(part == ZERO for part in parts[1:-1])
            if real and factor.count_roots() == 0:
                continue
            if not (real and pure):
                raise UndecidedError("a polynomial that does not fall into factors of degree two")
        found.extend(roots(parts, scalars, real=real))
    return found


def _number(value: Any) -> Number:
    return Number(Fraction(int(value.p), int(value.q)))


def equation_roots(first: Expression, second: Expression, name: str, scalars: Scalars) -> list[Expression]:
    """All complex solutions of an equation between rational functions. Raises UndecidedError."""
    above, below = fraction_of(scalars.read(Sum((first, Negation(second)))), name)
    found: list[Expression] = []
    for root in roots(above, scalars, real=False):
        under = _at(below, root)
        truth = scalars.compare(under, ZERO).truth
        if truth is Truth.OPEN:
            raise UndecidedError("whether a denominator is zero is open")
        if truth is Truth.DIFFERENT:
            found.append(root)
    return found


def _at(of: Coefficients, point: Expression) -> Expression:
    terms = [Product((c, Power(point, number(i)))) if i else c for i, c in enumerate(of) if c != ZERO or i == 0]
    return folded(Sum(tuple(terms))) if len(terms) > 1 else terms[0]


def inequality_set(comparison: Comparison, name: str, scalars: Scalars) -> RealSet:
    """The real numbers that make it true. Raises UndecidedError."""
    cuts: list[Expression] = []
    pairs = list(zip(comparison.operands, comparison.relations, comparison.operands[1:], strict=False))
    for first, _, second in pairs:
        cuts.extend(_cuts(scalars.read(Sum((first, Negation(second)))), name, scalars))
    ordered = ordered_cuts(cuts, scalars)
    samples = _samples(ordered, scalars)
    at = tuple(_true(pairs, name, cut, scalars) is True for cut in ordered)
    gaps = [_true(pairs, name, Number(sample), scalars) for sample in samples]
    if None in gaps:
        # Inside a gap all points are alike, but for some that a form like x^0 leaves without a value.
        raise UndecidedError("no value where one was expected")
    return RealSet("real", ordered, at, tuple(gap is True for gap in gaps))


def _cuts(node: Expression, name: str, scalars: Scalars) -> list[Expression]:
    absolutes = {
        part for part in walk(node) if isinstance(part, Call) and part.function == "abs" and name in symbols(part)
    }
    if len(absolutes) > MAX_ABSOLUTE:
        raise UndecidedError("too many absolute values")
    found: list[Expression] = []
    ordered = sorted(absolutes, key=lambda part: sum(1 for _ in walk(part)), reverse=True)
    for absolute in ordered:
        found.extend(_cuts(absolute.arguments[0], name, scalars))
    for signs in itertools.product((1, -1), repeat=len(ordered)):
        changed = node
        for absolute, sign in zip(ordered, signs, strict=True):
            inside = absolute.arguments[0]
            changed = _replaced(changed, absolute, inside if sign > 0 else Negation(inside))
        above, below = fraction_of(changed, name)
        for part in (above, below):
            if trimmed(part, scalars):
                found.extend(roots(part, scalars, real=True))
    return found


def _replaced(node: Expression, old: Expression, new: Expression) -> Expression:
    from verifiers.answers.rewriting import mapped

    return mapped(node, lambda part: new if part == old else None)


def _samples(cuts: Sequence[Expression], scalars: Scalars) -> list[Fraction]:
    """A rational number inside each gap. Raises UndecidedError."""
    if not cuts:
        return [Fraction(0)]
    try:
        bounds = [_bounds(cut, scalars) for cut in cuts]
    except OpenError as error:
        raise UndecidedError("the size of a cut is open") from error
    middles: list[Fraction] = []
    for (_, below), (above, _) in itertools.pairwise(bounds):
        if below >= above:
            raise UndecidedError("two cuts are too close")
        middles.append((below + above) / 2)
    return [bounds[0][0] - 1, *middles, bounds[-1][1] + 1]


def _bounds(cut: Expression, scalars: Scalars) -> tuple[Fraction, Fraction]:
    value = rational(cut)
    return (value, value) if value is not None else scalars.enclosed(cut)


def _true(
    pairs: list[tuple[Expression, Relation, Expression]], name: str, point: Expression, scalars: Scalars
) -> bool | None:
    """Whether all hold at a point; None where one side has no value there. Raises UndecidedError."""
    for first, relation, second in pairs:
        try:
            left, right = (substitute(side, name, point) for side in (first, second))
            order = scalars.order(left, right)
        except GrammarError:
            return None
        if order is None:
            raise UndecidedError("open at a point")
        if not {"<": order < 0, "<=": order <= 0, ">": order > 0, ">=": order >= 0, "==": order == 0}.get(
            relation, order != 0
        ):
            return False
    return True


def both(first: RealSet, second: RealSet, scalars: Scalars) -> RealSet:
    return combined(first, second, lambda a, b: a and b, scalars)


def either(first: RealSet, second: RealSet, scalars: Scalars) -> RealSet:
    return combined(first, second, lambda a, b: a or b, scalars)
