"""Writes shorthands out, and reads functions that nobody knows as unknowns.

`plain` leaves only functions that enclosures and normal forms know. `f(2)` for an unknown f is a symbol of its own: two
of them are one symbol when their arguments have the same normal form, so `f(2)` is never a product.
"""

from __future__ import annotations

from collections.abc import Callable

from verifiers.answers import normal
from verifiers.answers.grammar import nodes as n
from verifiers.answers.grammar.errors import UndefinedError
from verifiers.answers.grammar.nodes import ONE, TWO, mapped, minus, walk
from verifiers.answers.monomials import NoNormalFormError

BINDERS = frozenset({"integral", "sum", "product", "limit", "derivative"})
KNOWN = frozenset(
    {"sqrt", "cbrt", "root", "abs", "exp", "ln", "log", "sin", "cos", "tan", "cot", "sec", "csc", "sinh", "cosh"}
    | {"tanh", "asin", "acos", "atan", "floor", "ceil", "factorial", "binomial", "gcd", "lcm", "min", "max"}
    | {"mod", "floordiv"}
)


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
    "conj": lambda x: conjugate(x),  # noqa: PLW0108 - defined below
    "re": lambda x: n.Quotient(n.Sum((x, conjugate(x))), TWO),
    "im": lambda x: n.Quotient(minus(x, conjugate(x)), n.Product((TWO, n.Constant("i")))),
}


class NoConjugateError(Exception):
    """Says that the conjugate is not known by the way the tree is built."""


def conjugate(node: n.Expression) -> n.Expression:
    """Returns the complex conjugate of an expression in real symbols. Raises NoConjugateError."""
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


def plain(node: n.Expression) -> n.Expression:
    """Returns the same value without shorthands. Raises UndefinedError for what is no number."""
    return mapped(node, _written_out)


def _written_out(node: n.Expression) -> n.Expression | None:
    match node:
        case n.FunctionCall(name, (of,)) if name in SHORTHANDS:
            inside = plain(of)
            try:
                return SHORTHANDS[name](inside)
            except NoConjugateError:
                return n.FunctionCall(name, (inside,))
        case n.Constant(name) if name not in ("pi", "e", "i"):
            raise UndefinedError(f"{name} is not a number")
        case _:
            return None


def opaque_as_symbols(first: n.Expression, second: n.Expression) -> tuple[n.Expression, n.Expression]:
    """Returns each call of an unknown function replaced by one symbol for it."""
    names: dict[object, str] = {}

    def known(node: n.Expression) -> n.Expression | None:
        if not isinstance(node, n.FunctionCall) or node.function in KNOWN:
            return None
        parts = tuple(mapped(part, known) for part in node.arguments)
        try:
            key: object = (node.function, *(normal.normal(part, real=True).key for part in parts))
        except NoNormalFormError:
            key = (node.function, parts)
        return n.Symbol(names.setdefault(key, f"{node.function}(...)#{len(names)}"))

    return mapped(first, known), mapped(second, known)


def has_binder(node: n.Expression) -> bool:
    """Says whether an integral, a sum, a limit or the like is left to be computed."""
    return any(isinstance(part, n.FunctionCall) and part.function in BINDERS for part in walk(node))
