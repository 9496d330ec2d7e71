"""Expands shorthands, and treats unknown functions as unknowns.

`plain` leaves only functions that enclosures and normal forms know. `f(2)` for an unknown f is a symbol of its own, the
same for arguments of the same normal form, so `f(2)` is never a product.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from verifiers.answers.algebra import normal
from verifiers.answers.algebra.monomials import NoNormalFormError
from verifiers.answers.grammar import nodes as n
from verifiers.answers.grammar.errors import UndefinedError
from verifiers.answers.grammar.nodes import ONE, TWO, mapped, minus, symbols, walk, with_index
from verifiers.answers.grammar.rational import MAX_ZETA, bernoulli, rational

BINDERS = frozenset({"integral", "sum", "product", "limit", "derivative"})
KNOWN = frozenset(
    {"sqrt", "cbrt", "root", "abs", "exp", "ln", "log", "sin", "cos", "tan", "cot", "sec", "csc", "sinh", "cosh"}
    | {"tanh", "asin", "acos", "atan", "floor", "ceil", "factorial", "binomial", "gcd", "lcm", "min", "max"}
    | {"mod", "floordiv", "sign", "conj", "arg", "zeta"}
)
UNDECIDED = BINDERS | {"Gamma"}
"""Known calls that remain; as unknowns they prove no difference."""


MAX_GAMMA = 200
OPAQUE = "(...)#"
"""Mark in the name of a symbol that replaces a value of an unknown function."""
BOUND = "#"


def _call(name: str, *arguments: n.Expression) -> n.Expression:
    return n.FunctionCall(name, arguments)


SHORTHANDS: dict[str, Callable[[n.Expression], n.Expression]] = {
    "percent": lambda x: n.Quotient(x, n.number(100)),
    "coth": lambda x: n.Quotient(_call("cosh", x), _call("sinh", x)),
    "sech": lambda x: n.Quotient(ONE, _call("cosh", x)),
    "csch": lambda x: n.Quotient(ONE, _call("sinh", x)),
    "asec": lambda x: _call("acos", n.Quotient(ONE, x)),
    "acsc": lambda x: _call("asin", n.Quotient(ONE, x)),
    "asinh": lambda x: _call("ln", n.Sum((x, _call("sqrt", n.Sum((n.Power(x, TWO), ONE)))))),
    "acosh": lambda x: _call(
        "ln", n.Sum((x, n.Product((_call("sqrt", minus(x, ONE)), _call("sqrt", n.Sum((x, ONE)))))))
    ),
    "atanh": lambda x: n.Quotient(_call("ln", n.Quotient(n.Sum((ONE, x)), minus(ONE, x))), TWO),
    "acot": lambda x: minus(n.Quotient(n.Constant("pi"), TWO), _call("atan", x)),
    "Gamma": lambda x: _gamma(x),  # noqa: PLW0108 - defined below
    "zeta": lambda x: _zeta(x),  # noqa: PLW0108 - defined below
}
CONJUGATES: dict[str, Callable[[n.Expression, n.Expression], n.Expression]] = {
    "conj": lambda _, conjugated: conjugated,
    "re": lambda x, conjugated: n.Quotient(n.Sum((x, conjugated)), TWO),
    "im": lambda x, conjugated: n.Quotient(minus(x, conjugated), n.Product((TWO, n.Constant("i")))),
}
"""Functions of a value and its conjugate."""


def _gamma(of: n.Expression) -> n.Expression:
    """Rewrites Gamma(x) as the factorial (x - 1)!, and at 1/2, -1/2, 3/2, ... as a rational multiple of sqrt(pi). Other
    fractions stay."""
    value = None if symbols(of) else rational(of)
    if value is None or value.denominator == 1:
        return _call("factorial", minus(of, ONE))
    if value.denominator != 2 or abs(value) > MAX_GAMMA:
        return _call("Gamma", of)
    factor, half = Fraction(1), Fraction(1, 2)
    while value > half:
        value -= 1
        factor *= value
    while value < half:
        factor /= value
        value += 1
    return n.Product((n.Number(factor), _call("sqrt", n.Constant("pi"))))


def _zeta(of: n.Expression) -> n.Expression:
    """Rewrites zeta(2), zeta(4), ... as rational multiples of powers of pi; other values stay."""
    value = None if symbols(of) else rational(of)
    if value is None or value.denominator != 1 or value % 2 or not 0 < value <= MAX_ZETA:
        return _call("zeta", of)
    exponent = value.numerator
    factor = abs(bernoulli(exponent)) * 2 ** (exponent - 1) / math.factorial(exponent)
    return n.Product((n.Number(factor), n.Power(n.Constant("pi"), n.number(exponent))))


class NoConjugateError(Exception):
    """The complex conjugate of the expression is not known by construction."""


def conjugate(node: n.Expression) -> n.Expression:
    """Returns the complex conjugate of an expression whose symbols are real. Raises NoConjugateError if no rule gives
    it."""
    match node:
        case n.Number() | n.Symbol():
            return node
        case n.Constant(name):
            return n.Negation(node) if name == "i" else node
        case n.FunctionCall("sqrt", (n.Number(value),)) if value >= 0:
            return node
        case n.Power(_, exponent) if node.base != n.Constant("e") and not _is_whole(exponent):
            raise NoConjugateError
        case n.FunctionCall(name, _) if name not in ("sin", "cos", "exp"):
            raise NoConjugateError
        case _:
            return n.with_children(node, tuple(map(conjugate, n.children(node))))


def _is_whole(node: n.Expression) -> bool:
    return isinstance(node, n.Number) and node.value.denominator == 1


def plain(node: n.Expression, *, real: bool = True) -> n.Expression:
    """Rewrites functions such as coth, asinh, re and percent by basic ones of the same value. With `real`, symbols are
    real. Raises UndefinedError for constants that are not numbers."""
    return mapped(node, lambda part: _written_out(part, real))


def _written_out(node: n.Expression, real: bool) -> n.Expression | None:
    match node:
        case n.FunctionCall(name, (of,)) if name in SHORTHANDS:
            return SHORTHANDS[name](plain(of, real=real))
        case n.FunctionCall(name, (of,)) if name in CONJUGATES:
            inside = plain(of, real=real)
            try:
                if symbols(inside) and not real:
                    raise NoConjugateError
                return CONJUGATES[name](inside, conjugate(inside))
            except NoConjugateError:
                return CONJUGATES[name](inside, _call("conj", inside))
        case n.Constant(name) if name not in ("pi", "e", "i"):
            raise UndefinedError(f"{name} is not a number")
        case _:
            return None


@dataclass(frozen=True)
class OpaquePair:
    """Two expressions whose values of unknown functions are replaced by symbols, equal calls by the same one."""

    first: n.Expression
    second: n.Expression
    alike: bool = True
    """True if both sides use the same values of unknown functions; else neither equality nor difference is proved."""
    certain: bool = True
    """True if a difference of the two expressions would prove a difference of the original ones."""


def opaque_as_symbols(first: n.Expression, second: n.Expression) -> OpaquePair:
    """Replaces calls of unknown functions in two expressions by symbols."""
    names: dict[object, str] = {}

    def known(node: n.Expression) -> n.Expression | None:
        if not isinstance(node, n.FunctionCall) or node.function in KNOWN:
            return None
        parts = tuple(mapped(part, known) for part in _numbered(node).arguments)
        try:
            key: object = (node.function, *(normal.normal(part, real=True).key for part in parts))
        except NoNormalFormError:
            key = (node.function, parts)
        return n.Symbol(names.setdefault(key, f"{node.function}{OPAQUE}{len(names)}"))

    sides = mapped(first, known), mapped(second, known)
    if not names:
        return OpaquePair(first, second)
    spoken = [symbols(side).intersection(names.values()) for side in sides]
    alike = spoken[0] == spoken[1]
    return OpaquePair(*sides, alike, alike and UNDECIDED.isdisjoint(name.partition("(")[0] for name in names.values()))


def _numbered(node: n.FunctionCall) -> n.FunctionCall:
    """Gives the index of a sum or the like a name of its own, also where it is a subscript, as in a_k."""
    match node.arguments:
        case (_, n.Symbol(index), *_) if node.function in BINDERS:

            def renamed(part: n.Expression) -> n.Expression | None:
                if not isinstance(part, n.Symbol):
                    return None
                return n.Symbol(BOUND if part.name == index else with_index(part.name, index, BOUND))

            return n.FunctionCall(node.function, tuple(mapped(part, renamed) for part in node.arguments))
        case _:
            return node


def has_binder(node: n.Expression) -> bool:
    """True if an expression contains an integral, a sum, a product, a limit or a derivative."""
    return any(isinstance(part, n.FunctionCall) and part.function in BINDERS for part in walk(node))
