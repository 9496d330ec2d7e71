"""Compares sets, intervals, unions and the values of one symbol as sets of numbers.

Finite sets are compared member by member, for any kind of member. Everything else becomes a set of real numbers in
canonical form. A difference names a number that belongs to only one of the two.
"""

from __future__ import annotations

from functools import reduce

from verifiers.answers.algebra import real_sets as r
from verifiers.answers.algebra.equality import EqualityFinding, Truth, decided, different, equal, undecided
from verifiers.answers.algebra.scalars import Scalars
from verifiers.answers.algebra.solving import equation_roots, inequality_set
from verifiers.answers.bound_names import renamed
from verifiers.answers.format import written
from verifiers.answers.grammar import values as v
from verifiers.answers.grammar.lists import SETS
from verifiers.answers.grammar.nodes import Expression, number, symbols
from verifiers.answers.grammar.traverse import comparisons, free_symbols
from verifiers.answers.matching import PartComparer, matched


def is_set(value: v.Value) -> bool:
    """True if a value is written as a set: an interval, braces, a number set or an operation on sets."""
    return isinstance(value, SETS)


def only_symbol(value: v.Value) -> str | None:
    """Returns the symbol whose values a relation or set describes; None if there is none or several."""
    match value:
        case v.Builder(symbol, _, _):
            return symbol
        case v.Images():
            return value.name
        case v.RelationValue():
            names = free_symbols(value)
            return next(iter(names)) if len(names) == 1 else None
        case _:
            return None


def members(value: v.Value, scalars: Scalars) -> tuple[v.Value, ...] | None:
    """Returns the members of a finite set, or all solutions of equations in one symbol, complex ones included. Returns
    None for other values. Raises UndecidedError if the solutions are not found."""
    match value:
        case v.FiniteSet(items) | v.Listing(items):
            return items
        case v.SetOperation("union", parts):
            found: list[v.Value] = []
            for part in parts:
                inside = members(part, scalars)
                if inside is None:
                    return None
                found.extend(inside)
            return tuple(found)
        case v.Builder(_, None | v.NumberSet("C"), v.RelationValue() as condition):
            return members(condition, scalars)
        case v.Builder(_, v.FiniteSet(items), None):
            return items
        case v.RelationValue() if value.joined == "or" or len(value.parts) == 1:
            return _solutions(value, scalars)
        case _:
            return None


def _solutions(relation: v.RelationValue, scalars: Scalars) -> tuple[v.Value, ...] | None:
    name = only_symbol(relation)
    if name is None:
        return None
    found: list[v.Value] = []
    for part in relation.parts:
        if isinstance(part, v.RelationValue):
            inside = members(part, scalars)
            if inside is None:
                return None
            found.extend(inside)
        elif part.relations == ("==",):
            found.extend(map(v.Scalar, equation_roots(part.operands[0], part.operands[1], name, scalars)))
        else:
            return None
    return tuple(found)


def real_set(value: v.Value, scalars: Scalars) -> r.RealSet:
    """Converts a value to the canonical set of real numbers that it describes. Raises UndecidedError if that is not
    proven, GrammarError if a part has no value."""
    return r.canonical(_real_set(value, scalars), scalars)


def _real_set(value: v.Value, scalars: Scalars) -> r.RealSet:
    match value:
        case v.FiniteSet(items) | v.Listing(items):
            return r.finite([_constant(item, "a member") for item in items], scalars)
        case v.Interval(low, high, closed_low, closed_high):
            if low == v.Infinity(1) or high == v.Infinity(-1):
                return r.NOTHING
            below, above = (
                None if isinstance(end, v.Infinity) else _constant(v.Scalar(end), "an end") for end in (low, high)
            )
            # Infinity is not a number, so its bracket has no meaning.
            return r.interval(below, above, closed_low, closed_high, scalars)
        case v.NumberSet("R"):
            return r.REALS
        case v.NumberSet("Q"):
            return r.RealSet("rational", gaps=(True,))
        case v.NumberSet("Z"):
            return r.RealSet("whole", gaps=(True,))
        case v.NumberSet("N" | "N0" as letter):
            return r.RealSet("whole", (number(1 if letter == "N" else 0),), (True,), (False, True))
        case v.SetOperation(operation, parts):
            operate = {"union": r.union, "intersection": r.intersection, "difference": r.without}[operation]
            return reduce(lambda a, b: operate(a, b, scalars), (real_set(part, scalars) for part in parts))
        case v.Builder(_, within, None):
            return r.REALS if within is None else real_set(within, scalars)
        case v.Builder(symbol, within, v.RelationValue() as condition):
            total = r.REALS if within is None else real_set(within, scalars)
            if only_symbol(condition) != symbol:
                raise r.UndecidedError("a condition on a different symbol")
            return r.intersection(total, real_set(condition, scalars), scalars)
        case v.RelationValue(joined, parts):
            name = only_symbol(value)
            if name is None:
                raise r.UndecidedError("not about exactly one symbol")
            found = [
                real_set(part, scalars)
                if isinstance(part, v.RelationValue)
                else r.canonical(inequality_set(part, name, scalars), scalars)
                for part in parts
            ]
            return reduce(lambda a, b: (r.intersection if joined == "and" else r.union)(a, b, scalars), found)
        case _:
            raise r.UndecidedError("not a set of numbers")


def _constant(item: v.Value, what: str) -> Expression:
    if isinstance(item, v.Scalar) and not symbols(item.of):
        return item.of
    raise r.UndecidedError(f"{what} that is not a constant")


def compare_sets(answer: v.Value, expected: v.Value, parts: PartComparer) -> EqualityFinding:
    """Compares two values that describe sets, listed or by conditions. Raises GrammarError if a part has no value."""
    scalars = parts.scalars
    try:
        first, second = members(answer, scalars), members(expected, scalars)
        if first is not None and second is not None:
            return matched_members(first, second, parts)
        solved = (answer, expected)
        if first is not None:
            solved = (v.FiniteSet(first), expected)
        elif second is not None:
            solved = (answer, v.FiniteSet(second))
        one, other = (real_set(value, scalars) for value in solved)
        witness = r.difference(one, other, scalars)
        if witness is None and second is not None and _is_range(answer):
            return undecided("an interval or inequality in place of the values themselves")
        if witness is None:
            return equal("the same set of numbers")
        tolerance = parts.tolerance
        if tolerance is not None and r.alike(one, other, lambda a, b: bool(tolerance.judge(a, b, scalars))):
            return equal("each end within the tolerance")
        if isinstance(witness, str):
            return different(witness)
        return different("a number belongs to one of the two sets only", {"number": written(witness)})
    except r.UndecidedError as error:
        return _structural(answer, expected, parts) or undecided(str(error))


def matched_members(first: tuple[v.Value, ...], second: tuple[v.Value, ...], parts: PartComparer) -> EqualityFinding:
    """Decides if two finite sets have the same members. Within a tolerance, each member needs a partner of its own."""
    exact = None if parts.tolerance is None else parts.exact.compare
    return matched(first, second, parts.compare, repeats=False, exact=exact)


def _is_range(value: v.Value) -> bool:
    """True for an interval or a set of inequalities, which may contain a single number or none."""
    match value:
        case v.Interval():
            return True
        case v.RelationValue():
            return not all(set(part.relations) == {"=="} for part in comparisons(value))
        case v.Builder(_, None | v.NumberSet("R") | v.Interval(), condition):
            return condition is None or _is_range(condition)
        case _:
            return False


def _structural(answer: v.Value, expected: v.Value, parts: PartComparer) -> EqualityFinding | None:
    """Compares sets with symbols part by part, such as the ends of intervals. Returns None if equality is not proved;
    only named number sets can be found different."""
    same = parts.compare
    match answer, expected:
        case v.NumberSet(), v.NumberSet():
            return equal("the same number set") if answer == expected else different("a different number set")
        case v.Interval(), v.Interval():
            if (answer.closed_low, answer.closed_high) != (expected.closed_low, expected.closed_high):
                return None
            ends = ((answer.low, expected.low), (answer.high, expected.high))
            found = decided([same(end_of(a), end_of(b)) for a, b in ends], "the same ends")
        case v.SetOperation(operation, inner), v.SetOperation(other, others):
            if operation != other or len(inner) != len(others):
                return None
            if operation == "difference":
                found = decided(map(same, inner, others), "the same parts")
            else:
                found = matched(inner, others, same, repeats=True)
        case v.Builder(), v.Builder():
            pairs = ((answer.within, expected.within), (answer.condition, expected.condition))
            if any((a is None) != (b is None) for a, b in pairs):
                return None
            if answer.symbol != expected.symbol:
                if answer.condition is None or expected.symbol in free_symbols(answer):
                    return None
                return _structural(renamed(answer, {answer.symbol: expected.symbol}), expected, parts)
            both = [same(a, b) for a, b in pairs if a is not None and b is not None]
            found = decided(both, "the same condition")
        case _:
            return None
    return found if found.truth is Truth.EQUAL else None


def end_of(end: Expression | v.Infinity) -> v.Value:
    """Converts an end of an interval, an expression or infinity, to a value."""
    return end if isinstance(end, v.Infinity) else v.Scalar(end)
