"""Expression tree. Sums and products are flat: a tree is as deep as its brackets."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class Number:
    value: Fraction
    """Exact value: `0.1` is 1/10."""
    written: str = field(default="", compare=False)
    """Spelling, if it is not digits only: `0.50`, `1e-3`, `1 1/2`."""


@dataclass(frozen=True, slots=True)
class Symbol:
    name: str


@dataclass(frozen=True, slots=True)
class Constant:
    name: Literal["pi", "e", "i", "infinity"]
    """`infinity` occurs only as a bound of an integral or a sum, or as the point of a limit."""


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
class FunctionCall:
    function: str
    arguments: tuple[Expression, ...]


Expression = Number | Symbol | Constant | Negation | Sum | Product | Quotient | Power | FunctionCall


def number(value: Fraction | int) -> Number:
    return Number(Fraction(value))


def minus(first: Expression, second: Expression) -> Sum:
    return Sum((first, Negation(second)))


ZERO, ONE, TWO = map(number, (0, 1, 2))

Relation = Literal["==", "!=", "<", "<=", ">", ">="]
HOLDS: dict[Relation, Callable[[int, int], bool]] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
"""Truth of a relation between two numbers; also between the sign of their difference and 0."""


@dataclass(frozen=True, slots=True)
class ComparisonNode:
    """Chain `operands[0] relations[0] operands[1] relations[1] ...`: each neighbouring pair must hold."""

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


Condition = ComparisonNode | Not | And | Or


CHILDREN: dict[type, Callable[[Any], tuple[Expression, ...]]] = {
    Negation: lambda node: (node.of,),
    Sum: operator.attrgetter("terms"),
    Product: operator.attrgetter("factors"),
    Quotient: operator.attrgetter("numerator", "denominator"),
    Power: operator.attrgetter("base", "exponent"),
    FunctionCall: operator.attrgetter("arguments"),
}


def children(node: Expression) -> tuple[Expression, ...]:
    inside = CHILDREN.get(type(node))
    return () if inside is None else inside(node)


def walk(node: Expression) -> Iterator[Expression]:
    """Yields an expression and all its subexpressions, each before its parts."""
    waiting = [node]
    while waiting:
        part = waiting.pop()
        yield part
        waiting += children(part)[::-1]


NO_SYMBOLS: frozenset[str] = frozenset()
BINDERS = frozenset({"integral", "sum", "product", "limit"})
"""Calls whose second argument is a symbol bound within the first."""


def with_index(name: str, index: str, new: str) -> str:
    """Returns the name of a symbol with another index: `a_j+1` for `a_k+1`."""
    letter, line, foot = name.partition("_")
    return letter + line + re.sub(rf"(?<![A-Za-z]){re.escape(index)}(?![A-Za-z])", new, foot)


def symbols(*nodes: Expression) -> frozenset[str]:
    """Returns all free symbols of expressions: not those bound by an integral, a sum, a product or a limit. A sequence
    with a bound index is free, as `a_#`."""
    found: set[str] = set()
    waiting = list(nodes)
    while waiting:
        node = waiting.pop()
        match node:
            case Symbol(name):
                found.add(name)
            case FunctionCall(function, (body, Symbol(bound), *rest)) if function in BINDERS:
                found.update(with_index(name, bound, "#") for name in symbols(body) - {bound})
                waiting += rest
            case _:
                waiting += children(node)
    return frozenset(found)


def comparisons(condition: Condition) -> Iterator[ComparisonNode]:
    match condition:
        case ComparisonNode():
            yield condition
        case Not(of):
            yield from comparisons(of)
        case And(parts) | Or(parts):
            for part in parts:
                yield from comparisons(part)


def with_children(node: Expression, parts: tuple[Expression, ...]) -> Expression:
    """Returns a copy of an expression's top node with other children."""
    match node:
        case Sum() | Product():
            return type(node)(parts)
        case FunctionCall(name):
            return FunctionCall(name, parts)
        case Negation() | Quotient() | Power():
            return type(node)(*parts)
        case _:
            return node


def mapped(node: Expression, change: Callable[[Expression], Expression | None]) -> Expression:
    """Returns a copy of an expression in which `change` replaces subexpressions, outermost first. Where `change`
    returns None, the parts inside are tried."""
    changed = change(node)
    if changed is not None:
        return changed
    inside = children(node)
    parts = tuple([mapped(part, change) for part in inside])
    return node if all(map(operator.is_, parts, inside)) else with_children(node, parts)


def replaced(node: Expression, old: Expression, new: Expression) -> Expression:
    """Returns a copy of an expression with every occurrence of a subexpression replaced by another."""
    return mapped(node, lambda part: new if part == old else None)


def substitute(node: Expression, values: Mapping[str, Expression]) -> Expression:
    """Returns a copy of an expression with symbols replaced by values."""
    return mapped(node, lambda part: values.get(part.name) if isinstance(part, Symbol) else None) if values else node
