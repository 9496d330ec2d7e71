"""Decides whether an equation keeps the solutions of another: `y/x = 1` has lost the point (0, 0) of `y = x`.

Examines everything that must not be zero (denominators, arguments of logarithms): it must be non-zero everywhere, or
non-zero where the other equation holds, or be required by the other equation as well. Denominators of the expected
equation are non-zero by assumption. Unproved cases count as lost.
"""

from __future__ import annotations

import math
from typing import Any

from verifiers.answers.algebra.divisors import nonzero_parts
from verifiers.answers.algebra.scalars import Scalars
from verifiers.answers.grammar import nodes as n
from verifiers.answers.grammar.nodes import symbols

MAX_PARTS = 8
MAX_UNKNOWNS = 5
MAX_DEGREE = 10
"""Maximum total degree of the polynomials of a Groebner basis, and of each tree before expansion."""


def degree_bound(node: n.Expression) -> int:
    """Returns an upper bound on the degrees of an expression's numerator and denominator, as polynomials in its symbols
    and functions."""
    match node:
        case n.Number():
            return 0
        case n.Negation(of):
            return degree_bound(of)
        case n.Sum(parts):
            degrees = [degree_bound(part) for part in parts]
            return sum(degrees) if any(map(nonzero_parts, parts)) else max(degrees)
        case n.Product(parts):
            return sum(map(degree_bound, parts))
        case n.Quotient(above, below):
            return degree_bound(above) + degree_bound(below)
        case n.Power(base, n.Number(value)):
            return math.ceil(degree_bound(base) * abs(value))
        case n.Power(base, exponent):
            return degree_bound(base) + degree_bound(exponent)
        case _:
            return 1


def keeps_solutions(answer: n.Expression, expected: n.Expression, scalars: Scalars, *, equation: bool) -> bool:
    """True if an equation `answer = 0` is proved to have a value at every solution of `expected = 0`. For inequalities:
    wherever `expected` has a value. Also true for `a = F/m` where `F = m a` is expected: solved for one symbol, in
    lowest terms. False if that is not proven."""
    known = nonzero_parts(expected)
    open_parts = nonzero_parts(answer) - known
    if not open_parts:
        return True
    involved = (answer, expected, *known, *open_parts)
    if len(open_parts) > MAX_PARTS or any(degree_bound(node) > MAX_DEGREE for node in involved):
        return False
    from verifiers.answers.algebra.symbolic import gives

    def defined() -> bool:
        if all(_is_never_zero(part, expected if equation else None, known, scalars) for part in open_parts):
            return True
        return equation and _is_formula(answer, open_parts | (nonzero_parts(answer) & known), scalars)

    return gives(True, defined)


def _is_never_zero(
    part: n.Expression, expected: n.Expression | None, known: frozenset[n.Expression], scalars: Scalars
) -> bool:
    import sympy

    from verifiers.answers.algebra.symbolic import build

    built = build(part, scalars.domain)
    if built.is_zero is False:
        return True
    # No common zero, not even a complex one, of the part and the equation where all of `known` are non-zero.
    together = [_above(built)]
    if expected is not None:
        together.append(_above(build(expected, scalars.domain)))
    if known:
        inverse = sympy.Dummy()
        product = sympy.Mul(*(_above(build(one, scalars.domain)) for one in sorted(known, key=repr)))
        together.append(1 - inverse * product)
    polynomials, options = sympy.parallel_poly_from_expr(together)
    if len(options.gens) > MAX_UNKNOWNS or sum(one.total_degree() for one in polynomials) > MAX_DEGREE:
        return False
    return bool(sympy.groebner(polynomials, *options.gens, order="grevlex").exprs == [1])


def _above(of: Any) -> Any:
    import sympy

    return sympy.expand(sympy.fraction(sympy.together(of))[0])


def _is_formula(answer: n.Expression, parts: frozenset[n.Expression], scalars: Scalars) -> bool:
    """True for `symbol = ...` whose denominators do not cancel: solutions are then lost only where the numerator is
    zero."""
    import sympy

    from verifiers.answers.algebra.symbolic import build

    match answer:
        case n.Sum((n.Symbol(name), n.Negation(value))) | n.Sum((value, n.Negation(n.Symbol(name)))) if (
            name not in symbols(value)
        ):
            pass
        case _:
            return False
    below = sympy.fraction(sympy.cancel(sympy.together(build(value, scalars.domain))))[1]
    names = sorted(below.free_symbols, key=str)
    if not names or not below.is_polynomial(*names):
        return False
    for part in parts:
        built = build(part, scalars.domain)
        if not built.free_symbols <= set(names) or not built.is_polynomial(*names):
            return False
        if not sympy.rem(sympy.Poly(below, *names), sympy.Poly(built, *names)).is_zero:
            return False
    return True
