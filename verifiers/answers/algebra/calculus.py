"""Evaluates sums, products, integrals, limits and derivatives.

Finite sums and products of few terms are expanded. SymPy does the rest; its definite integrals are compared with
numerical quadrature, because a wrong branch of an antiderivative is its commonest mistake.

Decides whether every term of a sum or a product has a value: a closed form skips undefined terms.

Uses an allow-list: a term not known to be defined at every whole number from the first one on counts as undefined.
Symbols other than the index are assumed to be in general position, where nothing happens to be zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

from verifiers.answers.algebra.divisors import cancels_safely
from verifiers.answers.algebra.intervals import DIGITS, OpenError, contains_zero, enclosure
from verifiers.answers.algebra.rewriting import BINDERS, has_binder, plain
from verifiers.answers.grammar import nodes as n
from verifiers.answers.grammar.errors import GrammarError
from verifiers.answers.grammar.nodes import mapped, substitute, symbols, walk, with_index
from verifiers.answers.grammar.rational import rational

EVERYWHERE = frozenset({"sqrt", "cbrt", "abs", "exp", "sin", "cos", "sinh", "cosh", "tanh", "atan", "floor", "ceil"})
"""Functions that have a value wherever their argument has one."""


@dataclass(frozen=True)
class IndexedTerms:
    """Terms of a sum or product whose index runs from `low` to `high`, or without end if `high` is None."""

    index: str
    low: int
    high: int | None

    def are_defined(self, node: n.Expression) -> bool:
        match node:
            case n.Quotient(above, below):
                return self.are_defined(above) and self.are_nonzero(below)
            case n.Power(base, exponent):
                whole = isinstance(exponent, n.Number) and exponent.value > 0 and exponent.value.denominator == 1
                return all(map(self.are_defined, (base, exponent))) and (whole or self.are_nonzero(base))
            case n.FunctionCall("ln", (of,)):
                return self.are_nonzero(of)
            case n.FunctionCall("factorial" | "binomial", arguments):
                return all(map(self._are_natural, arguments))
            case n.FunctionCall(name) if name not in EVERYWHERE:
                return False
            case _:
                return all(map(self.are_defined, n.children(node)))

    def are_nonzero(self, node: n.Expression) -> bool:
        """True if an expression is certainly defined and non-zero at every value of the sum's or product's index. False
        if that is not proven."""
        match node:
            case n.Number(value):
                return value != 0
            case n.Constant() | n.FunctionCall("exp", _):
                return self.are_defined(node)
            case n.Negation(of) | n.FunctionCall("sqrt" | "cbrt" | "abs", (of,)):
                return self.are_nonzero(of)
            case n.Product() | n.Quotient():
                return all(map(self.are_nonzero, n.children(node)))
            case n.Power(base, exponent):
                return self.are_nonzero(base) and self.are_defined(exponent)
            case n.FunctionCall("factorial", (of,)):
                return self._are_natural(of)
            case n.Symbol() | n.Sum():
                return self._have_no_root(node)
            case _:
                return False

    def _are_natural(self, node: n.Expression) -> bool:
        """True if an expression is certainly a natural number at every index of a sum or product. Accepts polynomials
        that have non-negative integer coefficients in (index - first index), such as `2k + 1`. An expression of other
        symbols counts only if it lacks the index."""
        import sympy

        from verifiers.answers.algebra.symbolic import build

        if symbols(node) - {self.index}:
            return self.index not in symbols(node)
        step = sympy.Dummy()
        built = build(node, "real").subs(sympy.Symbol(self.index, real=True), step + self.low)
        return built.is_polynomial(step) and all(
            factor.is_Integer and factor >= 0 for factor in sympy.Poly(built, step).all_coeffs()
        )

    def _have_no_root(self, node: n.Expression) -> bool:
        """True if no factor of a polynomial that contains only the summation index is zero at an index in range. False
        if the expression is zero or not a polynomial."""
        import sympy

        from verifiers.answers.algebra.symbolic import build

        built, index = build(node, "real"), sympy.Symbol(self.index, real=True)
        if not built.free_symbols:
            return _is_nonzero(node)
        if not built.is_polynomial(*built.free_symbols) or built.is_zero or not _has_rational_coefficients(built):
            return False
        roots = [
            root
            for factor, _ in sympy.factor_list(built)[1]
            if factor.free_symbols == {index}
            for root in sympy.Poly(factor, index).ground_roots()
        ]
        return not any(
            root.is_Integer and root >= self.low and (self.high is None or root <= self.high) for root in roots
        )


def _is_nonzero(node: n.Expression) -> bool:
    try:
        return not contains_zero(enclosure(DIGITS[0]).value(node))
    except (GrammarError, OpenError):
        return False


def _has_rational_coefficients(built: Any) -> bool:
    import sympy

    return all(factor.is_Rational for factor in sympy.Poly(built, *built.free_symbols).coeffs())


MAX_TERMS = 2_000
MAX_SYMBOLIC_TERMS = 60
SAMPLES = tuple(n.Number(Fraction(value)) for value in ("3/7", "17/11", "-5/13", "29/5", "2"))
CLOSE = 1e-6
"""Maximum relative deviation of SymPy's integral from quadrature: a check on SymPy, not a proof."""


class UnresolvedError(Exception):
    """A sum, integral or the like could not be evaluated."""


def resolved(node: n.Expression) -> n.Expression:
    """Evaluates the sums, products, integrals, limits and derivatives of an expression; sums over a sequence `a_k`
    stay. Raises UnresolvedError if one cannot be evaluated, GrammarError if one has no value."""
    return mapped(node, _worked_out) if has_binder(node) else node


def _worked_out(node: n.Expression) -> n.Expression | None:
    if not isinstance(node, n.FunctionCall) or node.function not in BINDERS:
        return None
    node = _indexed(node)
    if _subscripted(node):
        return node
    inside = n.FunctionCall(node.function, tuple(resolved(part) for part in node.arguments))
    return _binder(inside)


def _indexed(node: n.FunctionCall) -> n.FunctionCall:
    """Replaces the constants i and e by symbols in a sum or integral that uses that letter as its variable."""
    match node.arguments:
        case (body, n.Symbol("i" | "e" as index), *ends):
            own = mapped(body, lambda part: n.Symbol(index) if part == n.Constant(index) else None)
            return n.FunctionCall(node.function, (own, n.Symbol(index), *ends))
        case _:
            return node


def _subscripted(node: n.FunctionCall) -> bool:
    """True if a sum or the like contains a symbol with its index as subscript, such as a_k."""
    match node.arguments:
        case (_, n.Symbol(index), *_):
            names = [part.name for part in walk(node) if isinstance(part, n.Symbol)]
            return any(with_index(name, index, "#") != name for name in names)
        case _:
            return False


@lru_cache(maxsize=256)
def _binder(node: n.FunctionCall) -> n.Expression:
    match node:
        case n.FunctionCall("sum" | "product" as name, (body, n.Symbol(index), low, high)):
            return _written_out(name, body, index, low, high) or _closed(node) or _by_sympy(node)
        case _:
            return _by_sympy(node)


def _written_out(
    name: str, body: n.Expression, index: str, low: n.Expression, high: n.Expression
) -> n.Expression | None:
    first, last = _whole(low), _whole(high)
    if first is None or last is None:
        return None
    most = MAX_TERMS if symbols(body) <= {index} else MAX_SYMBOLIC_TERMS
    if last < first - 1:
        raise UnresolvedError("its range runs backwards, which is read in two ways")
    if last - first + 1 > most:
        return None
    terms = tuple(substitute(body, {index: n.number(value)}) for value in range(first, last + 1))
    if not terms:
        return n.ZERO if name == "sum" else n.ONE
    whole: n.Expression = n.Sum(terms) if name == "sum" else n.Product(terms)
    try:
        value = rational(whole) if not symbols(whole) else None
    except GrammarError as error:
        raise UnresolvedError(str(error)) from error
    return whole if value is None else n.Number(value)


def _closed(node: n.FunctionCall) -> n.Expression | None:
    """Evaluates a sum or product of very many terms by its closed form; None for fewer terms or symbolic ends. SymPy
    gets a symbol for the last index, so that it cannot start adding."""
    low, high = (_whole(end) for end in node.arguments[2:])
    if low is None or high is None or high - low < MAX_TERMS:
        return None
    unknown = n.Symbol("last#")
    found = _by_sympy(n.FunctionCall(node.function, (*node.arguments[:3], unknown)))
    return substitute(found, {unknown.name: n.number(high)})


def _whole(node: n.Expression) -> int | None:
    value = None if isinstance(node, n.Constant) or symbols(node) else rational(node)
    return None if value is None or value.denominator != 1 else value.numerator


def _by_sympy(node: n.FunctionCall) -> n.Expression:
    import sympy

    from verifiers.answers.algebra.symbolic import from_sympy

    try:
        terms = node.function in ("sum", "product")
        if not (_has_terms(node) if terms else _is_sampled(node.arguments[0])):
            raise UnresolvedError(f"a term of the {node.function} may have no value")
        found = _computed(node)
        if found is None or found.has(sympy.nan, sympy.zoo, sympy.oo, -sympy.oo):
            raise UnresolvedError(f"the {node.function} has no known value")
        return from_sympy(found)
    except (MemoryError, RecursionError, UnresolvedError):
        raise
    except GrammarError as error:
        raise UnresolvedError(str(error)) from error
    except Exception as error:
        raise UnresolvedError(f"the {node.function} could not be worked out") from error


def _has_terms(node: n.FunctionCall) -> bool:
    match node.arguments:
        case (body, n.Symbol(index), low, high):
            first = _whole(low)
            return first is not None and IndexedTerms(index, first, _whole(high)).are_defined(plain(body))
        case _:
            return False


def _is_sampled(body: n.Expression) -> bool:
    """True if an expression has a value for nearly all values of its symbols: at a sample point, and no divisor or call
    lacks one on an interval."""
    body = plain(body)
    names = sorted(symbols(body))
    points = [dict(zip(names, (SAMPLES * 2)[shift:], strict=False)) for shift in range(len(SAMPLES))]
    for point in points if len(names) <= len(SAMPLES) else ():
        try:
            enclosure(DIGITS[0]).value(substitute(body, point))
        except (GrammarError, OpenError):
            continue
        return cancels_safely(body, n.ZERO, lambda: points)
    return False


def _computed(node: n.FunctionCall) -> Any:
    import sympy

    body, variable = _built(node.arguments[0]), _built(node.arguments[1])
    ends = tuple(_bound(end) for end in node.arguments[2:])
    match node.function, ends:
        case "derivative", ():
            return sympy.diff(body, variable)
        case "integral", ():
            found = sympy.integrate(body, variable)
            return found if sympy.simplify(sympy.diff(found, variable) - body) == 0 else None
        case "integral", (low, high):
            return _definite(body, variable, low, high)
        case "sum", (low, high):
            return sympy.summation(body, (variable, low, high))
        case "product", (low, high):
            return sympy.product(body, (variable, low, high))
        case "limit", (point,):
            left = sympy.limit(body, variable, point, "-") if point.is_finite else None
            right = sympy.limit(body, variable, point, "+") if point.is_finite else sympy.limit(body, variable, point)
            return right if left is None or sympy.simplify(left - right) == 0 else None
        case _:
            raise UnresolvedError(f"an unsupported form of {node.function}")


def _definite(body: Any, variable: Any, low: Any, high: Any) -> Any:
    import mpmath
    import sympy

    found = sympy.integrate(body, (variable, low, high))
    if found.has(sympy.Integral):
        return None
    if found.free_symbols:
        antiderivative = sympy.integrate(body, variable)
        checked = sympy.simplify(sympy.diff(antiderivative, variable) - body) == 0
        plain_ends = antiderivative.subs(variable, high) - antiderivative.subs(variable, low)
        return found if checked and sympy.simplify(plain_ends - found) == 0 else None
    function = sympy.lambdify(variable, body, "mpmath") if body.free_symbols else (lambda _: body.evalf(20))
    ends = [_number_at(end) for end in (low, high)]
    number = mpmath.quad(lambda at: mpmath.mpmathify(function(at)), ends)
    exact = mpmath.mpmathify(found.evalf(20))
    return found if abs(number - exact) <= CLOSE * max(1, abs(exact)) else None


def _number_at(end: Any) -> Any:
    import mpmath

    if end.is_infinite:
        return mpmath.inf if end.is_extended_positive else -mpmath.inf
    return mpmath.mpmathify(end.evalf(20))


def _built(node: n.Expression) -> Any:
    from verifiers.answers.algebra.symbolic import build

    return build(plain(node), "real")


def _bound(node: n.Expression) -> Any:
    import sympy

    match node:
        case n.Constant("infinity"):
            return sympy.oo
        case n.Negation(n.Constant("infinity")):
            return -sympy.oo
        case _:
            return _built(node)
