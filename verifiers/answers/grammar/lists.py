"""Meaning of several values together: a list, a system, alternatives, a set with its condition."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from fractions import Fraction

from verifiers.answers.grammar import nodes as n
from verifiers.answers.grammar import values as v
from verifiers.answers.grammar.errors import GrammarError
from verifiers.answers.grammar.nodes import symbols
from verifiers.answers.grammar.traverse import free_symbols

NODES = (n.Number, n.Symbol, n.Constant, n.Negation, n.Sum, n.Product, n.Quotient, n.Power, n.FunctionCall)

SETS = (v.Interval, v.FiniteSet, v.NumberSet, v.SetOperation, v.Builder, v.Images)
"""Value types written as sets."""

Refusal = Callable[[str], GrammarError]


def is_name(value: v.Value) -> bool:
    """True for a value that can be a name left of an equation, such as `x`, `f(2)` or `(x, y)`."""
    match value:
        case v.Scalar(n.Symbol() | n.FunctionCall()):
            return True
        case v.Tuple(items):
            return all(map(is_name, items))
        case _:
            return False


def named_points(name: v.Tuple, value: v.Value, refusal: Refusal) -> v.Value:
    r"""Returns the possible points of a tuple of names, from both sides of `(x, y) \in \{...\}`."""
    if (
        not isinstance(value, v.FiniteSet)
        or not value.items
        or not all(isinstance(item, v.Tuple) for item in value.items)
    ):
        raise refusal("a tuple as a member of anything but a set of points")
    return v.Named(name, value.items[0] if len(value.items) == 1 else v.Listing(value.items))


def as_set(value: v.Value, refusal: Refusal) -> v.Value:
    """Returns the value if it is a set; two numbers in round brackets become an open interval. Raises the error of
    `refusal` for others."""
    match value:
        case v.Tuple((v.Scalar(low), v.Scalar(high))):
            return v.Interval(low, high, False, False)
        case v.Scalar(n.Symbol()):
            raise refusal("a set that is only named")
        case _ if isinstance(value, SETS):
            return value
        case _:
            raise refusal("a set was expected")


def joined(items: list[v.Value], joiners: Collection[str], refusal: Refusal) -> v.Value:
    r"""Combines an answer's items and the joiners between them (`,`, `and`, `or`) into one value. `\pm` gives two items
    and no joiner."""
    if len(items) == 1:
        return items[0]
    first = items[0]
    others = items[1:]
    described = images(items[:-1], items[-1]) or merged(items)
    if described is not None:
        return described
    if isinstance(first, v.RelationValue):
        unknown = solved(first)
        if unknown and all(isinstance(item, v.Scalar) for item in others):
            # `x = 1, 2` and `x = 1 or 2`: every value is one of the unknown.
            more = (
                v.RelationValue("and", (n.ComparisonNode((unknown, item.of), ("==",)),))
                for item in others
                if isinstance(item, v.Scalar)
            )
            return v.RelationValue("or", (first, *more))
        relations = [item for item in items if isinstance(item, v.RelationValue)]
        if len(relations) == len(items):
            if {"and", "or"} <= set(joiners):
                raise refusal("relations joined by both 'and' and 'or'")
            same = unknown is not None and all(solved(item) == unknown for item in relations)
            either = "or" in joiners or (same and "and" not in joiners)
            return v.RelationValue("or" if either else "and", tuple(relations))
    if isinstance(first, v.Builder) and first.condition is None and "or" not in joiners:
        conditions = [item for item in others if isinstance(item, v.RelationValue)]
        if len(conditions) == len(others) and free_symbols(*conditions) <= {first.symbol}:
            return v.Builder(first.symbol, first.within, together(conditions))
    return v.Listing(tuple(items))


def plain_numbers(items: Iterable[object]) -> list[Fraction] | None:
    """Returns the values of items that are all numbers in digits; None if any is anything else."""
    found: list[Fraction] = []
    for item in items:
        match item:
            case v.Scalar(n.Number(value)):
                found.append(value)
            case v.Scalar(n.Negation(n.Number(value))):
                found.append(-value)
            case _:
                return None
    return found


def images(items: list[v.Value], last: v.Value) -> v.Images | None:
    r"""Combines expressions such as `2k` or `x = 3k` with the range of their parameter, `k \in Z`. Returns None if
    another symbol occurs, or the last item is no range."""
    match last:
        case v.Builder(symbol, v.NumberSet("Z" | "N" | "N0") as within, None):
            pass
        case _:
            return None
    found: list[n.Expression] = []
    names: set[str | None] = set()
    for item in items:
        match item:
            case v.Scalar(of):
                found.append(of)
                names.add(None)
            case v.RelationValue(_, (n.ComparisonNode((n.Symbol(name), of), ("==",)),)) if name != symbol:
                found.append(of)
                names.add(name)
            case _:
                return None
        if symbols(of) != {symbol}:
            return None
    # `x = 2k, 3k` speaks of x twice.
    named = names - {None}
    if len(named) > 1 or (named and None in names and not isinstance(items[0], v.RelationValue)):
        return None
    return v.Images(tuple(found), symbol, within, next(iter(named)) if named else None)


def merged(items: list[v.Value]) -> v.Images | None:
    """Merges sets such as `{2k + 1 : k in Z}` about one unknown; None for any other items."""
    found = [item for item in items if isinstance(item, v.Images)]
    first = found[0] if found else None
    if first is None or len(found) < len(items):
        return None
    if any((one.symbol, one.within, one.name) != (first.symbol, first.within, first.name) for one in found):
        return None
    return v.Images(tuple(of for one in found for of in one.of), first.symbol, first.within, first.name)


def approximated(value: v.Value, near: v.Value, refusal: Refusal) -> v.Value:
    r"""Combines the two sides of `5/36 \approx 0.139`, a constant and its decimal, both in the same unit. `x \approx
    2.35` assigns that decimal to x, compared as exactly as with an equals sign."""
    exact: n.Expression | None = None
    match value, near:
        case v.Scalar(n.Symbol() as name), v.Scalar(of) if only_decimal(near, refusal):
            return v.RelationValue("and", (n.ComparisonNode((name, of), ("==",)),))
        case v.Scalar(n.Symbol()), v.Quantity() if only_decimal(near, refusal):
            return v.Named(value, near)
        case v.Scalar(exact), v.Scalar(decimal):
            pass
        case v.Quantity(exact, unit), v.Quantity(decimal, other) if unit == other:
            pass
        case v.RelationValue(_, (n.ComparisonNode((n.Symbol(), exact), ("==",)),)), v.Scalar(decimal):
            pass
        case _:
            raise refusal("an approximation of anything but one number")
    if symbols(exact) or symbols(decimal):
        raise refusal("an approximation of something that is not a number")
    return v.Approximated(value, exact, decimal)


def only_decimal(value: v.Value, refusal: Refusal) -> v.Value:
    r"""Returns the value after a leading `\approx` as exactly the decimal written. Raises the error of `refusal` for
    anything else."""
    of = value.of if isinstance(value, v.Scalar | v.Quantity) else None
    inside = of.of if isinstance(of, n.Negation) else of
    match inside:
        case n.Number() | n.Product((n.Number(), n.Power(n.Number(), n.Number() | n.Negation(n.Number())))):
            return value
        case _:
            raise refusal("an approximation that is not a decimal")


def together(conditions: list[v.RelationValue]) -> v.RelationValue:
    return conditions[0] if len(conditions) == 1 else v.RelationValue("and", tuple(conditions))


def solved(relation: v.RelationValue) -> n.Expression | None:
    """Returns the symbol that a relation `x = ...` gives a value; None if the right side contains it too. Also None for
    other relations."""
    match relation:
        case v.RelationValue("and", (n.ComparisonNode((n.Symbol(name) as unknown, value), ("==",)),)) if (
            name not in symbols(value)
        ):
            return unknown
        case _:
            return None


def builder(items: list[v.Value], condition: v.Value, refusal: Refusal) -> v.Value:
    """Builds a set from both sides of a set builder, `{x | condition}` or `{2k | k in Z}`. Raises the error of
    `refusal` if they fit neither."""
    if isinstance(condition, v.Images) and items == [v.Scalar(n.Symbol(condition.name or ""))]:
        return v.Images(condition.of, condition.symbol, condition.within)
    found = images(items, condition)
    if found is not None and found.name is None and items != [v.Scalar(n.Symbol(found.symbol))]:
        return found
    if len(items) != 1:
        raise refusal("a set builder of several values")
    within: v.Value | None = None
    match items[0]:
        case v.Scalar(n.Symbol(name)):
            pass
        case v.Builder(name, within, None):
            pass
        case _:
            raise refusal("a set builder over anything but one symbol")
    match condition:
        case v.RelationValue():
            return v.Builder(name, within, condition)
        case v.Builder(other, inside, more) if other == name and within is None:
            return v.Builder(name, inside, more)
        case v.Listing(parts):
            relations = [part for part in parts if isinstance(part, v.RelationValue)]
            members = [
                part for part in parts if isinstance(part, v.Builder) and part.symbol == name and part.condition is None
            ]
            if within is None and len(members) == 1 and len(relations) + 1 == len(parts):
                return v.Builder(name, members[0].within, together(relations))
    raise refusal("an unreadable condition of a set builder")
