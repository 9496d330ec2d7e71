"""Whether an equation keeps the solutions of another: `y/x = 1` has lost the point (0, 0) of `y = x`.

Proved by looking at whatever must not be zero (denominators, arguments of logarithms): it never is, or it is not where
the other equation holds, or the other has it, too. What stands in the denominators of the expected equation is not zero
by the way it was asked for. What is not proved counts as lost.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from verifiers.answers.grammar.errors import GrammarError
from verifiers.answers.grammar.nodes import (
    Call,
    Expression,
    Negation,
    Number,
    Power,
    Product,
    Quotient,
    Sum,
    Symbol,
    symbols,
    walk,
)
from verifiers.answers.grammar.rational import rational
from verifiers.answers.scalars import Scalars

MAX_PARTS = 8
MAX_UNKNOWNS = 5
MAX_DEGREE = 10
"""Of all polynomials together, of which a Groebner basis is computed; and of each tree before it is expanded."""
ONE = Number(Fraction(1))


def nonzero_parts(node: Expression) -> frozenset[Expression]:
    """What must not be zero for a tree to have a value, apart from constants; products fall into their factors."""
    return frozenset(part for outer in _restricted(node) for part in _factors(outer) if symbols(part))


def _restricted(node: Expression) -> Iterator[Expression]:
    for part in walk(node):
        match part:
            case Quotient(_, below):
                yield below
            case Power(base, exponent) if not _is_positive(exponent):
                yield base
            case Call("tan" | "sec", (of,)):
                yield Call("cos", (of,))
            case Call("cot" | "csc", (of,)):
                yield Call("sin", (of,))
            case Call("tanh", (of,)):
                yield Call("cosh", (of,))
            case Call("ln", (of,)):
                yield of
            case Call("log", (of, base)):
                yield from (of, base, Sum((base, Negation(ONE))))
            case Call("mod" | "floordiv", (_, of)):
                yield of
            case _:
                continue


def _is_positive(exponent: Expression) -> bool:
    try:
        value = rational(exponent)
    except GrammarError:
        return False
    return value is not None and value > 0


def _factors(node: Expression) -> Iterator[Expression]:
    """Parts that are zero together with it, one or the other."""
    match node:
        case Negation(of) | Quotient(of, _) | Call("sqrt" | "cbrt" | "abs", (of,)) | Call("root", (of, _)):
            yield from _factors(of)
        case Power(base, exponent) if _is_positive(exponent):
            yield from _factors(base)
        case Product(factors):
            for factor in factors:
                yield from _factors(factor)
        case _:
            yield node


def _degree(node: Expression) -> int:
    """At least the degree of numerator and denominator over symbols, constants and functions."""
    match node:
        case Number():
            return 0
        case Negation(of):
            return _degree(of)
        case Sum(parts):
            degrees = [_degree(part) for part in parts]
            return sum(degrees) if any(map(nonzero_parts, parts)) else max(degrees)
        case Product(parts):
            return sum(map(_degree, parts))
        case Quotient(above, below):
            return _degree(above) + _degree(below)
        case Power(base, Number(value)):
            return math.ceil(_degree(base) * abs(value))
        case Power(base, exponent):
            return _degree(base) + _degree(exponent)
        case _:
            return 1


def keeps_solutions(answer: Expression, expected: Expression, scalars: Scalars, *, equation: bool) -> bool:
    """Whether `answer` certainly has a value wherever `expected` has one and is zero; wherever it has one, if it is no
    equation. One exception: `a = F/m` for `F = m a`, solved for a symbol and in lowest terms, counts as kept."""
    known = nonzero_parts(expected)
    open_parts = nonzero_parts(answer) - known
    if not open_parts:
        return True
    involved = (answer, expected, *known, *open_parts)
    if len(open_parts) > MAX_PARTS or any(_degree(node) > MAX_DEGREE for node in involved):
        return False
    try:
        if all(_is_never_zero(part, expected if equation else None, known, scalars) for part in open_parts):
            return True
        return equation and _is_formula(answer, open_parts | (nonzero_parts(answer) & known), scalars)
    except (MemoryError, RecursionError):
        raise
    except Exception:  # noqa: BLE001 - SymPy raises nearly anything; what fails has proved nothing
        return False


def _is_never_zero(
    part: Expression, expected: Expression | None, known: frozenset[Expression], scalars: Scalars
) -> bool:
    import sympy

    from verifiers.answers.symbolic import build

    built = build(part, scalars.domain)
    if built.is_zero is False:
        return True
    # No common zero, not even a complex one, of the part and the equation where all of `known` are not zero.
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


def _is_formula(answer: Expression, parts: frozenset[Expression], scalars: Scalars) -> bool:
    """Whether it says `symbol = ...` and none of its denominators cancels: then only points are missing at which the
    numerator is zero, too."""
    import sympy

    from verifiers.answers.symbolic import build

    match answer:
        case Sum((Symbol(name), Negation(value))) | Sum((value, Negation(Symbol(name)))) if name not in symbols(value):
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
