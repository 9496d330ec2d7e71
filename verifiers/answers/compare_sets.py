"""Sets, intervals, unions and what one symbol may be: equal as sets of numbers.

Finite sets are compared member by member, whatever their members are. Everything else becomes a set of real numbers in
canonical form. A difference names a number that belongs to one of the two only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction

from verifiers.answers.equality import Finding, Truth
from verifiers.answers.grammar.errors import GrammarError
from verifiers.answers.grammar.nodes import Comparison, Expression, Negation, Number, symbols
from verifiers.answers.real_sets import (
    NOTHING,
    REALS,
    RealSet,
    UndecidedError,
    canonical,
    combined,
    difference,
    finite,
    interval,
)
from verifiers.answers.scalars import Scalars
from verifiers.answers.solving import both, either, equation_roots, inequality_set, number
from verifiers.answers.values import (
    Builder,
    FiniteSet,
    Images,
    Infinity,
    Interval,
    Listing,
    NumberSet,
    Relation,
    Scalar,
    SetOperation,
    Value,
)

MAX_MEMBERS = 200

Same = Callable[[Value, Value], Finding]


def decided(findings: Iterable[Finding], equal: str) -> Finding:
    """All must be equal: the first difference settles it, otherwise the first that is open."""
    opened: Finding | None = None
    for finding in findings:
        if finding.truth is Truth.DIFFERENT:
            return finding
        if finding.truth is Truth.OPEN and opened is None:
            opened = finding
    return opened or Finding(Truth.EQUAL, equal)


def matched(first: tuple[Value, ...], second: tuple[Value, ...], same: Same, *, repeats: bool) -> Finding:
    """Whether each member has its equal on the other side; with `repeats`, as often."""
    known = _numbers(first), _numbers(second)
    if known[0] is not None and known[1] is not None and _same_numbers(known[0], known[1], repeats=repeats):
        return Finding(Truth.EQUAL, "the same members")
    if max(len(first), len(second)) > MAX_MEMBERS:
        return Finding(Truth.OPEN, f"more than {MAX_MEMBERS} members")
    if repeats and len(first) != len(second):
        return Finding(Truth.DIFFERENT, f"{len(first)} answers where {len(second)} were expected")
    opened = False
    left = list(first)
    for wanted in second:
        findings = [same(member, wanted) for member in (left if repeats else first)]
        found = next((i for i, finding in enumerate(findings) if finding.truth is Truth.EQUAL), None)
        if found is not None:
            if repeats:
                left.pop(found)
        elif any(finding.truth is Truth.OPEN for finding in findings):
            opened = True
        else:
            return Finding(Truth.DIFFERENT, "a member that was expected is missing")
    if not repeats:
        for member in first:
            findings = [same(member, wanted) for wanted in second]
            if all(finding.truth is Truth.DIFFERENT for finding in findings):
                return Finding(Truth.DIFFERENT, "a member that was not expected")
            opened = opened or not any(finding.truth is Truth.EQUAL for finding in findings)
    if opened:
        return Finding(Truth.OPEN, "whether two members are equal is open")
    return Finding(Truth.EQUAL, "the same members")


def _numbers(items: tuple[Value, ...]) -> list[Fraction] | None:
    """The values of written rational numbers; None where one is something else."""
    found: list[Fraction] = []
    for item in items:
        match item:
            case Scalar(Number(value)):
                found.append(value)
            case Scalar(Negation(Number(value))):
                found.append(-value)
            case _:
                return None
    return found


def _same_numbers(first: list[Fraction], second: list[Fraction], *, repeats: bool) -> bool:
    return sorted(first) == sorted(second) if repeats else set(first) == set(second)


def is_set(value: Value) -> bool:
    """Sets by the way they are written."""
    return isinstance(value, FiniteSet | Interval | NumberSet | SetOperation | Builder | Images)


def only_symbol(value: Value) -> str | None:
    """The symbol whose values a relation or builder describes, where there is exactly one."""
    match value:
        case Builder(symbol, _, _):
            return symbol
        case Images():
            return value.name
        case Relation():
            names = frozenset[str]().union(*(symbols(side) for part in flat(value) for side in part.operands))
            return next(iter(names)) if len(names) == 1 else None
        case _:
            return None


def flat(relation: Relation) -> list[Comparison]:
    found: list[Comparison] = []
    for part in relation.parts:
        found.extend(flat(part) if isinstance(part, Relation) else [part])
    return found


def members(value: Value, scalars: Scalars) -> tuple[Value, ...] | None:
    """The members of a finite set, or the solutions of equations in one symbol, complex ones included; else None.

    Raises UndecidedError.
    """
    match value:
        case FiniteSet(items) | Listing(items):
            return items
        case SetOperation("union", parts):
            found: list[Value] = []
            for part in parts:
                inside = members(part, scalars)
                if inside is None:
                    return None
                found.extend(inside)
            return tuple(found)
        case Builder(_, None | NumberSet("C"), Relation() as condition):
            return members(condition, scalars)
        case Builder(_, FiniteSet(items), None):
            return items
        case Relation() if value.joined == "or" or len(value.parts) == 1:
            return _solutions(value, scalars)
        case _:
            return None


def _solutions(relation: Relation, scalars: Scalars) -> tuple[Value, ...] | None:
    name = only_symbol(relation)
    if name is None:
        return None
    found: list[Value] = []
    for part in relation.parts:
        if isinstance(part, Relation):
            inside = members(part, scalars)
            if inside is None:
                return None
            found.extend(inside)
        elif part.relations == ("==",):
            found.extend(map(Scalar, equation_roots(part.operands[0], part.operands[1], name, scalars)))
        else:
            return None
    return tuple(found)


def real_set(value: Value, scalars: Scalars) -> RealSet:
    """The canonical set of real numbers. Raises UndecidedError, GrammarError."""
    return canonical(_real_set(value, scalars), scalars)


def _real_set(value: Value, scalars: Scalars) -> RealSet:
    match value:
        case FiniteSet(items) | Listing(items):
            return finite([_constant(item) for item in items], scalars)
        case Interval(low, high, closed_low, closed_high):
            return _interval(low, high, closed_low, closed_high, scalars)
        case NumberSet("R"):
            return REALS
        case NumberSet("Q"):
            return RealSet("rational", gaps=(True,))
        case NumberSet("Z"):
            return RealSet("whole", gaps=(True,))
        case NumberSet("N" | "N0" as letter):
            return RealSet("whole", (number(1 if letter == "N" else 0),), (True,), (False, True))
        case SetOperation(operation, parts):
            keep = {
                "union": lambda a, b: a or b,
                "intersection": lambda a, b: a and b,
                "difference": lambda a, b: a and not b,
            }[operation]
            total = real_set(parts[0], scalars)
            for part in parts[1:]:
                total = canonical(combined(total, real_set(part, scalars), keep, scalars), scalars)
            return total
        case Builder(symbol, within, condition):
            return _built(symbol, within, condition, scalars)
        case Relation(joined, parts):
            name = only_symbol(value)
            if name is None:
                raise UndecidedError("not about exactly one symbol")
            found = [_part(part, name, scalars) for part in parts]
            total = found[0]
            for one in found[1:]:
                total = canonical((both if joined == "and" else either)(total, one, scalars), scalars)
            return total
        case _:
            raise UndecidedError("not a set of numbers")


def _part(part: Comparison | Relation, name: str, scalars: Scalars) -> RealSet:
    if isinstance(part, Relation):
        return real_set(part, scalars)
    return canonical(inequality_set(part, name, scalars), scalars)


def _built(symbol: str, within: Value | None, condition: Relation | None, scalars: Scalars) -> RealSet:
    total = REALS if within is None else real_set(within, scalars)
    if condition is None:
        return total
    if only_symbol(condition) != symbol:
        raise UndecidedError("a condition on another symbol")
    return combined(total, real_set(condition, scalars), lambda a, b: a and b, scalars)


def _interval(
    low: Expression | Infinity, high: Expression | Infinity, closed_low: bool, closed_high: bool, scalars: Scalars
) -> RealSet:
    if low == Infinity(1) or high == Infinity(-1):
        return NOTHING
    below = None if isinstance(low, Infinity) else _real(low, scalars)
    above = None if isinstance(high, Infinity) else _real(high, scalars)
    # Infinity is no number, so a bracket beside it says nothing.
    return interval(below, above, closed_low, closed_high, scalars)


def _real(node: Expression, scalars: Scalars) -> Expression:
    if symbols(node):
        raise UndecidedError("an end that is no constant")
    return node


def _constant(item: Value) -> Expression:
    if isinstance(item, Scalar) and not symbols(item.of):
        return item.of
    raise UndecidedError("a member that is no constant")


def compare_sets(answer: Value, expected: Value, same: Same, scalars: Scalars) -> Finding:
    """Raises GrammarError where a part has no value."""
    because = "not both could be read as sets of real numbers"
    try:
        first, second = members(answer, scalars), members(expected, scalars)
        if first is not None and second is not None:
            return matched(first, second, same, repeats=False)
        solved = (answer, expected)
        if first is not None:
            solved = (FiniteSet(first), expected)
        elif second is not None:
            solved = (answer, FiniteSet(second))
        one, other = (real_set(value, scalars) for value in solved)
        witness = difference(one, other, scalars)
        if witness is None:
            return Finding(Truth.EQUAL, "the same set of numbers")
        if isinstance(witness, str):
            return Finding(Truth.DIFFERENT, witness)
        from verifiers.answers.writing import written

        return Finding(Truth.DIFFERENT, "a number belongs to one of the two sets only", {"number": written(witness)})
    except UndecidedError as error:
        because = str(error)
    except GrammarError:
        raise
    structural = _structural(answer, expected, same)
    return structural or Finding(Truth.OPEN, because)


def _structural(answer: Value, expected: Value, same: Same) -> Finding | None:
    """Equal part by part, for sets with symbols in them: never a difference."""
    if answer == expected and isinstance(answer, NumberSet):
        return Finding(Truth.EQUAL, "the same number set")
    if isinstance(answer, NumberSet) and isinstance(expected, NumberSet):
        return Finding(Truth.DIFFERENT, "another number set")
    match answer, expected:
        case Interval(), Interval():
            if (answer.closed_low, answer.closed_high) != (expected.closed_low, expected.closed_high):
                return None
            ends = [same(_end(a), _end(b)) for a, b in ((answer.low, expected.low), (answer.high, expected.high))]
            found = decided(ends, "the same ends")
            return found if found.truth is Truth.EQUAL else None
        case SetOperation(), SetOperation():
            if answer.operation != expected.operation or len(answer.parts) != len(expected.parts):
                return None
            if answer.operation == "difference":
                pairs = zip(answer.parts, expected.parts, strict=True)
                found = decided((same(a, b) for a, b in pairs), "the same parts")
            else:
                found = matched(answer.parts, expected.parts, same, repeats=True)
            return found if found.truth is Truth.EQUAL else None
        case Builder(), Builder():
            if answer.symbol != expected.symbol or (answer.within is None) != (expected.within is None):
                return None
            if (answer.condition is None) != (expected.condition is None):
                return None
            parts = [
                same(a, b)
                for a, b in ((answer.within, expected.within), (answer.condition, expected.condition))
                if a is not None and b is not None
            ]
            found = decided(parts, "the same condition")
            return found if found.truth is Truth.EQUAL else None
        case _:
            return None


def _end(end: Expression | Infinity) -> Value:
    return end if isinstance(end, Infinity) else Scalar(end)
