"""Proofs of equality by SymPy, whose objects are built by constructors from our own tree: no text ever reaches SymPy.

Imported only inside the worker. Symbols are made here, from the spec's domain alone: complex ones have no assumptions.
A proof is a chain of
rewritings that ends in exactly zero; numeric closeness is never one. What SymPy cannot prove stays open.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import sympy

from verifiers.answers.grammar.errors import GrammarError, UndefinedError
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
)
from verifiers.answers.grammar.rational import rational

MAX_EXPANDED_POWER = 200
"""Whole exponents of sums above this stay unexpanded: (x+y+z)^200 would have 20,000 terms."""


def _root(value: Any, degree: Any) -> Any:
    if not degree.is_Integer or degree < 1:
        raise GrammarError("a root whose degree is not 1, 2, 3, ...")
    if degree % 2 == 0 or value.is_nonnegative:
        return value ** (1 / degree)
    if value.is_negative:
        return -((-value) ** (1 / degree))
    # Real for what is real, which the principal power is not.
    if value.is_real:
        return sympy.sign(value) * sympy.Abs(value) ** (1 / degree)
    return sympy.Function("root")(value, degree)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "sqrt": sympy.sqrt,
    "abs": sympy.Abs,
    "exp": sympy.exp,
    "ln": sympy.log,
    "log": lambda value, base: sympy.log(value) / sympy.log(base),
    "sin": sympy.sin,
    "cos": sympy.cos,
    "tan": sympy.tan,
    "cot": sympy.cot,
    "sec": sympy.sec,
    "csc": sympy.csc,
    "sinh": sympy.sinh,
    "cosh": sympy.cosh,
    "tanh": sympy.tanh,
    "asin": sympy.asin,
    "acos": sympy.acos,
    "atan": sympy.atan,
    "floor": sympy.floor,
    "ceil": sympy.ceiling,
    "factorial": sympy.factorial,
    "binomial": sympy.binomial,
    "cbrt": lambda value: _root(value, sympy.Integer(3)),
    "root": _root,
}


ASSUMPTIONS: dict[str, dict[str, bool]] = {
    "complex": {},
    "real": {"real": True},
    "positive": {"positive": True},
    "integer": {"integer": True},
}


def build(node: Expression, domain: str = "complex") -> Any:
    """The SymPy object of a tree. Raises UndefinedError for what has no value, GrammarError for what is not covered."""
    found = _build(node, domain)
    if found.has(sympy.nan, sympy.zoo, sympy.oo, -sympy.oo):
        raise UndefinedError("a division by zero")
    return found


def _build(node: Expression, domain: str) -> Any:
    def inside(part: Expression) -> Any:
        return build(part, domain)

    exact = rational(node)
    if exact is not None:
        return _number(exact)
    match node:
        case Symbol(name):
            return sympy.Symbol(name, **ASSUMPTIONS[domain])
        case Constant("pi" | "e" | "i" as name):
            return {"pi": sympy.pi, "e": sympy.E, "i": sympy.I}[name]
        case Negation(of):
            return -inside(of)
        case Sum(parts):
            return sympy.Add(*map(inside, parts))
        case Product(parts):
            return sympy.Mul(*map(inside, parts))
        case Quotient(above, below):
            return sympy.Mul(inside(above), sympy.Pow(inside(below), -1))
        case Power(base, exponent):
            return sympy.Pow(inside(base), inside(exponent))
        case Call(name, arguments) if name in FUNCTIONS:
            return FUNCTIONS[name](*map(inside, arguments))
        case Call(name):
            raise GrammarError(f"{name} is only computed for rational numbers")
        case Constant(name):
            raise UndefinedError(f"{name} is not a number")
        case Number():
            raise AssertionError("numbers are rational")


def _number(value: Fraction) -> Any:
    return sympy.Rational(value.numerator, value.denominator)


def proves_equal(first: Expression, second: Expression, domain: str = "complex") -> str | None:
    """The name of the rewriting that turns the difference into zero, or None where none does.

    Raises GrammarError where one of the two has no value.
    """
    try:
        difference = build(first, domain) - build(second, domain)
    except (GrammarError, MemoryError, RecursionError):
        raise
    except Exception:  # noqa: BLE001 - SymPy raises nearly anything; what it cannot even build, it has not proved
        return None
    if difference == 0:
        return "construction"
    for name, rewrite in _rewritings(difference):
        try:
            if rewrite() == 0:
                return name
        except (MemoryError, RecursionError):
            raise
        except Exception:  # noqa: BLE001, S112 - SymPy raises nearly anything; what fails has proved nothing
            continue
    return None


def _rewritings(difference: Any) -> Iterator[tuple[str, Callable[[], Any]]]:
    """From the cheapest to the dearest."""
    large = [
        power for power in difference.atoms(sympy.Pow) if power.exp.is_Integer and abs(power.exp) > MAX_EXPANDED_POWER
    ]
    if not any(power.base.is_Add for power in large):
        yield "expand", lambda: sympy.expand(difference)
        yield "together", lambda: sympy.cancel(sympy.together(difference))
    yield "radsimp", lambda: sympy.expand(sympy.radsimp(sympy.sqrtdenest(difference)))
    if not difference.free_symbols and difference.is_algebraic:
        yield "minimal polynomial", lambda: _minimal(difference)
    yield "trigsimp", lambda: sympy.expand(sympy.trigsimp(sympy.expand_trig(difference)))
    yield "exponentials", lambda: sympy.expand(sympy.expand(difference.rewrite(sympy.exp), complex=False))
    yield "logarithms", lambda: sympy.expand(sympy.expand_log(difference))
    yield "simplify", lambda: sympy.simplify(difference)


def _minimal(difference: Any) -> Any:
    """Zero exactly when the minimal polynomial of the algebraic number is x itself."""
    unknown = sympy.Dummy()
    return 0 if sympy.minimal_polynomial(difference, unknown) == unknown else 1
