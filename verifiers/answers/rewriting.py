"""Shorthands written out, and functions that nobody knows read as unknowns.

`plain` leaves only functions that enclosures and normal forms know. `f(2)` for an unknown f is a symbol of its own: two
of them are one symbol when their arguments have the same normal form, so `f(2)` is never a product.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from verifiers.answers import normal
from verifiers.answers.grammar.errors import UndefinedError
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
    children,
    walk,
)
from verifiers.answers.monomials import NoNormalFormError
from verifiers.answers.monomials import key as key_of

ONE, TWO = Number(Fraction(1)), Number(Fraction(2))
BINDERS = frozenset({"integral", "sum", "product", "limit", "derivative"})
KNOWN = frozenset(
    {"sqrt", "cbrt", "root", "abs", "exp", "ln", "log", "sin", "cos", "tan", "cot", "sec", "csc", "sinh", "cosh"}
    | {"tanh", "asin", "acos", "atan", "floor", "ceil", "factorial", "binomial", "gcd", "lcm", "min", "max"}
    | {"mod", "floordiv"}
)


def _call(name: str, *arguments: Expression) -> Expression:
    return Call(name, arguments)


def _minus(node: Expression) -> Expression:
    return Negation(node)


SHORTHANDS: dict[str, Callable[[Expression], Expression]] = {
    "percent": lambda x: Quotient(x, Number(Fraction(100))),
    "coth": lambda x: Quotient(_call("cosh", x), _call("sinh", x)),
    "sech": lambda x: Quotient(ONE, _call("cosh", x)),
    "csch": lambda x: Quotient(ONE, _call("sinh", x)),
    "asec": lambda x: _call("acos", Quotient(ONE, x)),
    "acsc": lambda x: _call("asin", Quotient(ONE, x)),
    "asinh": lambda x: _call("ln", Sum((x, _call("sqrt", Sum((Power(x, TWO), ONE)))))),
    "acosh": lambda x: _call(
        "ln", Sum((x, Product((_call("sqrt", Sum((x, _minus(ONE)))), _call("sqrt", Sum((x, ONE)))))))
    ),
    "atanh": lambda x: Quotient(_call("ln", Quotient(Sum((ONE, x)), Sum((ONE, _minus(x))))), TWO),
    "conj": lambda x: conjugate(x),  # noqa: PLW0108 - defined below
    "re": lambda x: Quotient(Sum((x, conjugate(x))), TWO),
    "im": lambda x: Quotient(Sum((x, _minus(conjugate(x)))), Product((TWO, Constant("i")))),
}


class NoConjugateError(Exception):
    """The conjugate is not known by the way the tree is built."""


def conjugate(node: Expression) -> Expression:
    """The complex conjugate of an expression in real symbols. Raises NoConjugateError."""
    match node:
        case Number() | Symbol():
            return node
        case Constant(name):
            return Negation(node) if name == "i" else node
        case Negation(of):
            return Negation(conjugate(of))
        case Sum(parts):
            return Sum(tuple(map(conjugate, parts)))
        case Product(parts):
            return Product(tuple(map(conjugate, parts)))
        case Quotient(above, below):
            return Quotient(conjugate(above), conjugate(below))
        case Power(Constant("e"), exponent):
            return Power(Constant("e"), conjugate(exponent))
        case Power(base, Number(value)) if value.denominator == 1:
            return Power(conjugate(base), Number(value))
        case Call("sqrt", (Number(value),)) if value >= 0:
            return node
        case Call("sin" | "cos" | "exp" as name, (of,)):
            return Call(name, (conjugate(of),))
        case _:
            raise NoConjugateError


def plain(node: Expression) -> Expression:
    """The same value without shorthands. Raises UndefinedError for what is no number."""
    return mapped(node, _written_out)


def _written_out(node: Expression) -> Expression | None:
    match node:
        case Call(name, (of,)) if name in SHORTHANDS:
            inside = plain(of)
            try:
                return SHORTHANDS[name](inside)
            except NoConjugateError:
                return Call(name, (inside,))
        case Constant(name) if name not in ("pi", "e", "i"):
            raise UndefinedError(f"{name} is not a number")
        case _:
            return None


def opaque_as_symbols(first: Expression, second: Expression) -> tuple[Expression, Expression]:
    """Each call of an unknown function replaced by one symbol for it."""
    names: dict[object, str] = {}

    def known(node: Expression) -> Expression | None:
        if not isinstance(node, Call) or node.function in KNOWN:
            return None
        parts = tuple(mapped(part, known) for part in node.arguments)
        try:
            key: object = (node.function, *(key_of(normal.normal(part, real=True)) for part in parts))
        except NoNormalFormError:
            key = (node.function, parts)
        return Symbol(names.setdefault(key, f"{node.function}(...)#{len(names)}"))

    return mapped(first, known), mapped(second, known)


def has_binder(node: Expression) -> bool:
    """Whether an integral, a sum, a limit or the like is left to be computed."""
    return any(isinstance(part, Call) and part.function in BINDERS for part in walk(node))


def mapped(node: Expression, change: Callable[[Expression], Expression | None]) -> Expression:
    """The same tree with every part replaced for which `change` gives another; from the outside inwards."""
    changed = change(node)
    if changed is not None:
        return changed
    if not children(node):
        return node
    match node:
        case Call(name, arguments):
            return Call(name, tuple(mapped(part, change) for part in arguments))
        case Negation(of):
            return Negation(mapped(of, change))
        case Sum(parts):
            return Sum(tuple(mapped(part, change) for part in parts))
        case Product(parts):
            return Product(tuple(mapped(part, change) for part in parts))
        case Quotient(above, below):
            return Quotient(mapped(above, change), mapped(below, change))
        case Power(base, exponent):
            return Power(mapped(base, change), mapped(exponent, change))
        case _:
            return node
