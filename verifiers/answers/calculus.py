"""Sums, products, integrals, limits and derivatives worked out.

Finite sums and products of few terms are written out. SymPy does the rest; a definite integral that it finds is
compared with numerical quadrature, because a wrong branch of an antiderivative is its commonest mistake.
"""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache
from typing import Any

from verifiers.answers.grammar.errors import GrammarError
from verifiers.answers.grammar.nodes import (
    Call,
    Constant,
    Expression,
    Negation,
    Number,
    Power,
    Product,
    Quotient,
    Sum,
    Symbol,
    substitute,
    symbols,
    walk,
)
from verifiers.answers.grammar.rational import rational
from verifiers.answers.rewriting import BINDERS, has_binder, mapped, plain

MAX_TERMS = 2_000
MAX_SYMBOLIC_TERMS = 60
CLOSE = 1e-6
"""Relative, between SymPy's integral and quadrature: a check on SymPy, no proof of anything."""


class UnresolvedError(Exception):
    """It could not be worked out."""


def resolved(node: Expression) -> Expression:
    """The same value without binders, apart from those over a sequence. Raises UnresolvedError, GrammarError."""
    return mapped(node, _worked_out) if has_binder(node) else node


def _worked_out(node: Expression) -> Expression | None:
    if not isinstance(node, Call) or node.function not in BINDERS:
        return None
    node = _indexed(node)
    if _subscripted(node):
        return node
    inside = Call(node.function, tuple(resolved(part) for part in node.arguments))
    return _binder(inside)


def _indexed(node: Call) -> Call:
    """In a sum over i, i is the index and no imaginary unit."""
    match node.arguments:
        case (body, Symbol("i" | "e" as index), *ends):
            own = mapped(body, lambda part: Symbol(index) if part == Constant(index) else None)
            return Call(node.function, (own, Symbol(index), *ends))
        case _:
            return node


def _subscripted(node: Call) -> bool:
    """Whether it runs over a sequence, as the sum of a_k does: a_k is no constant there."""
    match node.arguments:
        case (_, Symbol(index), *_):
            subscripts = [name.partition("_")[2] for part in node.arguments for name in _names(part)]
            return any(re.search(rf"(?<![A-Za-z]){re.escape(index)}(?![A-Za-z])", text) for text in subscripts)
        case _:
            return False


def _names(node: Expression) -> set[str]:
    """All symbols, bound ones too."""
    return {part.name for part in walk(node) if isinstance(part, Symbol)}


@lru_cache(maxsize=256)
def _binder(node: Call) -> Expression:
    match node:
        case Call("sum" | "product" as name, (body, Symbol(index), low, high)):
            return _written_out(name, body, index, low, high) or _closed(node) or _by_sympy(node)
        case _:
            return _by_sympy(node)


def _written_out(name: str, body: Expression, index: str, low: Expression, high: Expression) -> Expression | None:
    first, last = _whole(low), _whole(high)
    if first is None or last is None:
        return None
    most = MAX_TERMS if symbols(body) <= {index} else MAX_SYMBOLIC_TERMS
    if last - first + 1 > most:
        return None
    terms = tuple(substitute(body, index, Number(Fraction(value))) for value in range(first, last + 1))
    if not terms:
        return Number(Fraction(0 if name == "sum" else 1))
    whole: Expression = Sum(terms) if name == "sum" else Product(terms)
    try:
        value = rational(whole) if not symbols(whole) else None
    except GrammarError as error:
        raise UnresolvedError(str(error)) from error
    return whole if value is None else Number(value)


def _closed(node: Call) -> Expression | None:
    """With very many terms: the closed form for any number of them, then the number put in. None for fewer.

    SymPy never sees the number, so it cannot begin to add.
    """
    low, high = (_whole(end) for end in node.arguments[2:])
    if low is None or high is None or high - low < MAX_TERMS:
        return None
    unknown = Symbol("last#")
    found = _by_sympy(Call(node.function, (*node.arguments[:3], unknown)))
    return substitute(found, unknown.name, Number(Fraction(high)))


def _whole(node: Expression) -> int | None:
    value = None if isinstance(node, Constant) or symbols(node) else rational(node)
    return None if value is None or value.denominator != 1 else value.numerator


def _by_sympy(node: Call) -> Expression:
    import sympy

    try:
        found = _computed(node)
    except (MemoryError, RecursionError, UnresolvedError):
        raise
    except GrammarError as error:
        raise UnresolvedError(str(error)) from error
    except Exception as error:
        raise UnresolvedError(f"the {node.function} could not be worked out") from error
    if found is None or found.has(sympy.nan, sympy.zoo, sympy.oo, -sympy.oo):
        raise UnresolvedError(f"the {node.function} has no value that could be found")
    return from_sympy(found)


def _computed(node: Call) -> Any:
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
            raise UnresolvedError(f"a {node.function} in a form that is not known")


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


def _built(node: Expression) -> Any:
    from verifiers.answers.symbolic import build

    return build(plain(node), "real")


def _bound(node: Expression) -> Any:
    import sympy

    match node:
        case Constant("infinity"):
            return sympy.oo
        case Negation(Constant("infinity")):
            return -sympy.oo
        case _:
            return _built(node)


NAMES = {
    "log": "ln", "sin": "sin", "cos": "cos", "tan": "tan", "cot": "cot", "sec": "sec", "csc": "csc", "sinh": "sinh",
    "cosh": "cosh", "tanh": "tanh", "asin": "asin", "acos": "acos", "atan": "atan", "Abs": "abs", "floor": "floor",
    "ceiling": "ceil", "factorial": "factorial", "binomial": "binomial",
}  # fmt: skip


def from_sympy(found: Any) -> Expression:
    """The tree of a SymPy object. Raises UnresolvedError for what trees cannot say."""
    import sympy

    if found.is_Rational:
        return Number(Fraction(int(found.p), int(found.q)))
    if found.is_Symbol:
        return Symbol(found.name)
    for value, name in ((sympy.pi, "pi"), (sympy.E, "e"), (sympy.I, "i")):
        if found == value:
            return Constant(name)  # type: ignore[arg-type]
    parts = tuple(map(from_sympy, found.args))
    if found.is_Add:
        return Sum(parts)
    if found.is_Mul:
        return Product(parts)
    if found.is_Pow:
        if found.exp == -1:
            return Quotient(Number(Fraction(1)), parts[0])
        return Call("sqrt", parts[:1]) if found.exp == sympy.Rational(1, 2) else Power(*parts)
    name = type(found).__name__
    if name == "exp":
        return Power(Constant("e"), parts[0])
    if name in NAMES and parts:
        return Call(NAMES[name], parts)
    raise UnresolvedError(f"its value needs {name}")
