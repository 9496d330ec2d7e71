"""What several values mean together: a list, a system, alternatives, a set with its condition."""

from __future__ import annotations

from collections.abc import Callable, Collection

from verifiers.answers.grammar.errors import GrammarError
from verifiers.answers.grammar.nodes import (
    Call,
    Comparison,
    Constant,
    Expression,
    Negation,
    Number,
    Power,
    Product,
    Quotient,
    Sum,
    Symbol,
    symbols,
)
from verifiers.answers.values import (
    Approximated,
    Builder,
    FiniteSet,
    Images,
    Interval,
    Listing,
    Named,
    NumberSet,
    Quantity,
    Relation,
    Scalar,
    SetOperation,
    Tuple,
    Value,
)

NODES = (Number, Symbol, Constant, Negation, Sum, Product, Quotient, Power, Call)
SETS = (Interval, FiniteSet, NumberSet, SetOperation, Builder, Images)

Refusal = Callable[[str], GrammarError]


def is_name(value: Value) -> bool:
    """A symbol, a call of an unknown function, or a tuple of such."""
    match value:
        case Scalar(Symbol() | Call()):
            return True
        case Tuple(items):
            return all(map(is_name, items))
        case _:
            return False


def named_points(name: Tuple, value: Value, refusal: Refusal) -> Value:
    """`(x, y) \\in \\{(1, 2), (2, 1)\\}`: the points that a tuple of names may be."""
    if not isinstance(value, FiniteSet) or not value.items or not all(isinstance(item, Tuple) for item in value.items):
        raise refusal("a tuple that is a member of something else than a set of points")
    return Named(name, value.items[0] if len(value.items) == 1 else Listing(value.items))


def as_set(value: Value, refusal: Refusal) -> Value:
    """The value where it is a set; two numbers in round brackets are an open interval here."""
    match value:
        case Tuple((Scalar(low), Scalar(high))):
            return Interval(low, high, False, False)
        case Interval() | FiniteSet() | NumberSet() | SetOperation() | Builder() | Images():
            return value
        case Scalar(Symbol()):
            raise refusal("a set that is only named")
        case _:
            raise refusal("a set was expected")


def joined(items: list[Value], joiners: Collection[str], refusal: Refusal) -> Value:
    """One value of several items and the signs between them. `\\pm` gives two items and no sign."""
    if len(items) == 1:
        return items[0]
    first = items[0]
    others = items[1:]
    described = images(items[:-1], items[-1]) or merged(items)
    if described is not None:
        return described
    if isinstance(first, Relation):
        unknown = solved(first)
        if unknown and all(isinstance(item, Scalar) for item in others):
            # `x = 1, 2` and `x = 1 or 2`: every value is one of the unknown.
            more = (
                Relation("and", (Comparison((unknown, item.of), ("==",)),))
                for item in others
                if isinstance(item, Scalar)
            )
            return Relation("or", (first, *more))
        relations = [item for item in items if isinstance(item, Relation)]
        if len(relations) == len(items):
            if {"and", "or"} <= set(joiners):
                raise refusal("relations joined by both 'and' and 'or'")
            same = unknown is not None and all(solved(item) == unknown for item in relations)
            either = "or" in joiners or (same and "and" not in joiners)
            return Relation("or" if either else "and", tuple(relations))
    if isinstance(first, Builder) and first.condition is None and "or" not in joiners:
        conditions = [item for item in others if isinstance(item, Relation)]
        if len(conditions) == len(others) and all(free(item) <= {first.symbol} for item in conditions):
            return Builder(first.symbol, first.within, together(conditions))
    return Listing(tuple(items))


def images(items: list[Value], last: Value) -> Images | None:
    """`k \\pi, k \\in Z` and `x = 2k, x = 3k, k \\in Z`, where nothing but k is in them; else None."""
    match last:
        case Builder(symbol, NumberSet("Z" | "N" | "N0") as within, None):
            pass
        case _:
            return None
    found: list[Expression] = []
    names: set[str | None] = set()
    for item in items:
        match item:
            case Scalar(of):
                found.append(of)
                names.add(None)
            case Relation(_, (Comparison((Symbol(name), of), ("==",)),)) if name != symbol:
                found.append(of)
                names.add(name)
            case _:
                return None
        if symbols(of) != {symbol}:
            return None
    # `x = 2k, 3k` speaks of x twice.
    named = names - {None}
    if len(named) > 1 or (named and None in names and not isinstance(items[0], Relation)):
        return None
    return Images(tuple(found), symbol, within, next(iter(named)) if named else None)


def merged(items: list[Value]) -> Images | None:
    """Several sets of images about the same unknown as one; None where one is something else."""
    found = [item for item in items if isinstance(item, Images)]
    first = found[0] if found else None
    if first is None or len(found) < len(items):
        return None
    if any((one.symbol, one.within, one.name) != (first.symbol, first.within, first.name) for one in found):
        return None
    return Images(tuple(of for one in found for of in one.of), first.symbol, first.within, first.name)


def approximated(value: Value, near: Value, refusal: Refusal) -> Value:
    """`5/36 \\approx 0.139`: only a constant has an approximation, and only a plain number in its unit is one."""
    exact: Expression | None = None
    match value, near:
        case Scalar(exact), Scalar(decimal):
            pass
        case Quantity(exact, unit), Quantity(decimal, other) if unit == other:
            pass
        case Relation(_, (Comparison((Symbol(), exact), ("==",)),)), Scalar(decimal):
            pass
        case _:
            raise refusal("an approximation of something else than one number")
    if symbols(exact) or symbols(decimal):
        raise refusal("an approximation of something that is no number")
    return Approximated(value, exact, decimal)


def together(conditions: list[Relation]) -> Relation:
    return conditions[0] if len(conditions) == 1 else Relation("and", tuple(conditions))


def free(relation: Relation) -> frozenset[str]:
    """All symbols of a relation."""
    found: frozenset[str] = frozenset()
    for part in relation.parts:
        found |= free(part) if isinstance(part, Relation) else frozenset().union(*map(symbols, part.operands))
    return found


def solved(relation: Relation) -> Expression | None:
    """The symbol of `x = ...` where it does not occur on the other side; None for any other relation."""
    match relation:
        case Relation("and", (Comparison((Symbol(name) as unknown, value), ("==",)),)) if name not in symbols(value):
            return unknown
        case _:
            return None


def builder(items: list[Value], condition: Value, refusal: Refusal) -> Value:
    """`{x | condition}`, `{x in S | condition}`, and images such as `{2k | k in Z}`."""
    if isinstance(condition, Images) and items == [Scalar(Symbol(condition.name or ""))]:
        return Images(condition.of, condition.symbol, condition.within)
    found = images(items, condition)
    if found is not None and found.name is None and items != [Scalar(Symbol(found.symbol))]:
        return found
    if len(items) != 1:
        raise refusal("a set builder of several values")
    within: Value | None = None
    match items[0]:
        case Scalar(Symbol(name)):
            pass
        case Builder(name, within, None):
            pass
        case _:
            raise refusal("a set builder over something else than one symbol")
    match condition:
        case Relation():
            return Builder(name, within, condition)
        case Builder(other, inside, more) if other == name and within is None:
            return Builder(name, inside, more)
        case Listing(parts):
            relations = [part for part in parts if isinstance(part, Relation)]
            members = [
                part for part in parts if isinstance(part, Builder) and part.symbol == name and part.condition is None
            ]
            if within is None and len(members) == 1 and len(relations) + 1 == len(parts):
                return Builder(name, members[0].within, together(relations))
    raise refusal("the condition of a set builder cannot be read")
