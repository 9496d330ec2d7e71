"""What a value is made of: its expressions, and the symbols that it leaves free."""

from __future__ import annotations

from collections.abc import Iterator

from verifiers.answers.grammar.nodes import Comparison, Expression, symbols
from verifiers.answers.values import (
    Approximated,
    Builder,
    FiniteSet,
    Images,
    Infinity,
    Interval,
    Listing,
    Matrix,
    Named,
    Piecewise,
    Quantity,
    Ratio,
    Relation,
    Scalar,
    SetOperation,
    Tuple,
    Value,
)


def inner(value: Value) -> tuple[Value, ...]:
    """The values inside, one level down."""
    match value:
        case Tuple(items) | Listing(items) | FiniteSet(items) | SetOperation(_, items):
            return items
        case Builder(_, within, condition):
            return tuple(part for part in (within, condition) if part is not None)
        case Relation():
            return tuple(part for part in value.parts if isinstance(part, Relation))
        case Named():
            return (value.value,)
        case Approximated(of):
            return (of,)
        case Piecewise(branches):
            return tuple(condition for _, condition in branches if condition is not None)
        case _:
            return ()


def values(value: Value) -> Iterator[Value]:
    """The value and everything inside it."""
    yield value
    for part in inner(value):
        yield from values(part)


def comparisons(value: Value) -> Iterator[Comparison]:
    for part in values(value):
        if isinstance(part, Relation):
            yield from (one for one in part.parts if isinstance(one, Comparison))


def expressions(value: Value) -> Iterator[Expression]:
    """All expressions, from left to right, those of comparisons included."""
    match value:
        case Scalar(of) | Quantity(of, _):
            yield of
        case Interval(low, high, _, _):
            yield from (end for end in (low, high) if not isinstance(end, Infinity))
        case Matrix(rows):
            for row in rows:
                yield from row
        case Ratio(items) | Images(items):
            yield from items
        case Piecewise(branches):
            for of, condition in branches:
                yield of
                if condition is not None:
                    yield from expressions(condition)
        case Relation():
            for part in value.parts:
                if isinstance(part, Relation):
                    yield from expressions(part)
                else:
                    yield from part.operands
        case _:
            for inside in inner(value):
                yield from expressions(inside)


def free_symbols(value: Value) -> frozenset[str]:
    """Symbols that stand for something which the value itself does not name."""
    match value:
        case Builder(symbol, _, _):
            return frozenset[str]().union(*map(free_symbols, inner(value))) - {symbol}
        case Images(_, symbol, _, name):
            inside = frozenset[str]().union(*map(symbols, expressions(value))) - {symbol}
            return inside | {name} if name else inside
        case Piecewise(branches):
            inside = frozenset[str]().union(*(symbols(of) for of, _ in branches), *map(free_symbols, inner(value)))
            # A condition such as `x \in [0, 1]` is about the x of the values.
            return inside | {part.symbol for part in inner(value) if isinstance(part, Builder)}
        case Tuple() | Listing() | FiniteSet() | SetOperation() | Named():
            return frozenset[str]().union(*map(free_symbols, inner(value)))
        case _:
            return frozenset[str]().union(*map(symbols, expressions(value)))
