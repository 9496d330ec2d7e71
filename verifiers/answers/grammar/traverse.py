"""Traversal of a value: its expressions, comparisons and free symbols."""

from __future__ import annotations

from collections.abc import Iterator

from verifiers.answers.grammar import values as v
from verifiers.answers.grammar.nodes import NO_SYMBOLS, ComparisonNode, Expression, symbols


def inner(value: v.Value) -> tuple[v.Value, ...]:
    """Returns the direct child values of a parsed value."""
    match value:
        case v.Tuple(items) | v.Listing(items) | v.FiniteSet(items) | v.SetOperation(_, items):
            return items
        case v.Builder(_, within, condition):
            return tuple(part for part in (within, condition) if part is not None)
        case v.RelationValue():
            return tuple(part for part in value.parts if isinstance(part, v.RelationValue))
        case v.Named():
            return (value.value,)
        case v.Approximated(of):
            return (of,)
        case v.Piecewise(branches):
            return tuple(condition for _, condition in branches if condition is not None)
        case _:
            return ()


def values(value: v.Value) -> Iterator[v.Value]:
    """Yields a parsed value and all values inside it."""
    yield value
    for part in inner(value):
        yield from values(part)


def comparisons(value: v.Value) -> Iterator[ComparisonNode]:
    """Yields all comparisons in a parsed value, from left to right."""
    for part in value.parts if isinstance(value, v.RelationValue) else inner(value):
        if isinstance(part, ComparisonNode):
            yield part
        else:
            yield from comparisons(part)


def expressions(value: v.Value) -> Iterator[Expression]:
    """Yields all expressions in a parsed value, from left to right, those of comparisons included."""
    match value:
        case v.Scalar(of) | v.Quantity(of, _):
            yield of
        case v.Interval(low, high, _, _):
            yield from (end for end in (low, high) if not isinstance(end, v.Infinity))
        case v.Matrix(rows):
            for row in rows:
                yield from row
        case v.Ratio(items) | v.Images(items):
            yield from items
        case v.Piecewise(branches):
            for of, condition in branches:
                yield of
                if condition is not None:
                    yield from expressions(condition)
        case v.RelationValue():
            for part in comparisons(value):
                yield from part.operands
        case _:
            for inside in inner(value):
                yield from expressions(inside)


def free_symbols(*of: v.Value) -> frozenset[str]:
    """Returns the symbols that a value uses but does not bind."""
    return NO_SYMBOLS.union(*map(_free_symbols, of))


def _free_symbols(value: v.Value) -> frozenset[str]:
    match value:
        case v.Builder(symbol, _, _):
            return free_symbols(*inner(value)) - {symbol}
        case v.Images(_, symbol, _, name):
            inside = symbols(*expressions(value)) - {symbol}
            return inside | {name} if name else inside
        case v.Piecewise(branches):
            inside = symbols(*(of for of, _ in branches)) | free_symbols(*inner(value))
            # A condition such as `x \in [0, 1]` is about the x of the values.
            return inside | {part.symbol for part in inner(value) if isinstance(part, v.Builder)}
        case v.Tuple() | v.Listing() | v.FiniteSet() | v.SetOperation() | v.Named():
            return free_symbols(*inner(value))
        case _:
            return symbols(*expressions(value))
