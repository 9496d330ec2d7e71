"""The tree that a text becomes. Sums and products are flat, so the depth of a tree is the depth of its brackets."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal


@dataclass(frozen=True, slots=True)
class Number:
    value: Fraction
    """Decimals are exact: `0.1` is 1/10."""
    written: str = field(default="", compare=False)
    """How an answer wrote it, where that was not digits only: `0.50`, `1e-3`, `1 1/2`."""


@dataclass(frozen=True, slots=True)
class Symbol:
    name: str


@dataclass(frozen=True, slots=True)
class Constant:
    name: Literal["pi", "e", "i", "infinity"]
    """Infinity is only ever a bound of an integral or a sum, or the point of a limit."""


@dataclass(frozen=True, slots=True)
class Negation:
    of: Expression


@dataclass(frozen=True, slots=True)
class Sum:
    terms: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Product:
    factors: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Quotient:
    numerator: Expression
    denominator: Expression


@dataclass(frozen=True, slots=True)
class Power:
    base: Expression
    exponent: Expression


@dataclass(frozen=True, slots=True)
class Call:
    function: str
    arguments: tuple[Expression, ...]


Expression = Number | Symbol | Constant | Negation | Sum | Product | Quotient | Power | Call

Relation = Literal["==", "!=", "<", "<=", ">", ">="]


@dataclass(frozen=True, slots=True)
class Comparison:
    """`operands[0] relations[0] operands[1] relations[1] ...`: each neighbouring pair must hold."""

    operands: tuple[Expression, ...]
    relations: tuple[Relation, ...]


@dataclass(frozen=True, slots=True)
class Not:
    of: Condition


@dataclass(frozen=True, slots=True)
class And:
    parts: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Or:
    parts: tuple[Condition, ...]


Condition = Comparison | Not | And | Or


def children(node: Expression) -> tuple[Expression, ...]:
    match node:
        case Negation(of):
            return (of,)
        case Sum(parts) | Product(parts) | Call(_, parts):
            return parts
        case Quotient(first, second) | Power(first, second):
            return (first, second)
        case _:
            return ()


def walk(node: Expression) -> Iterator[Expression]:
    """The node and everything below it."""
    yield node
    for child in children(node):
        yield from walk(child)


BINDERS = frozenset({"integral", "sum", "product", "limit"})
"""Calls whose second argument is a symbol that only their first argument knows."""


def symbols(node: Expression) -> frozenset[str]:
    """The free symbols: all but those that an integral, a sum, a product or a limit binds."""
    match node:
        case Symbol(name):
            return frozenset({name})
        case Call(function, (body, Symbol(bound), *rest)) if function in BINDERS:
            return (symbols(body) - {bound}).union(*map(symbols, rest))
        case _:
            return frozenset[str]().union(*map(symbols, children(node)))


def comparisons(condition: Condition) -> Iterator[Comparison]:
    match condition:
        case Comparison():
            yield condition
        case Not(of):
            yield from comparisons(of)
        case And(parts) | Or(parts):
            for part in parts:
                yield from comparisons(part)


def substitute(node: Expression, name: str, value: Expression) -> Expression:
    """The same tree with every `Symbol(name)` replaced."""

    def inside(part: Expression) -> Expression:
        return substitute(part, name, value)

    match node:
        case Symbol(other) if other == name:
            return value
        case Negation(of):
            return Negation(inside(of))
        case Sum(parts):
            return Sum(tuple(map(inside, parts)))
        case Product(parts):
            return Product(tuple(map(inside, parts)))
        case Call(function, parts):
            return Call(function, tuple(map(inside, parts)))
        case Quotient(first, second):
            return Quotient(inside(first), inside(second))
        case Power(first, second):
            return Power(inside(first), inside(second))
        case _:
            return node
