"""Kinds that meet: a value with its name and one without, a point that may be an interval, a calculation.

The expected answer says how the answer is meant. Nothing is accepted here: what comes out is compared.
"""

from __future__ import annotations

from verifiers.answers.compare_relations import solved
from verifiers.answers.compare_sets import flat, is_set, only_symbol
from verifiers.answers.equality import Truth
from verifiers.answers.grammar.nodes import Call, Comparison, Expression, Product, Symbol, substitute, symbols
from verifiers.answers.parts import free_symbols
from verifiers.answers.rewriting import KNOWN
from verifiers.answers.scalars import Scalars
from verifiers.answers.values import (
    BaseNumber,
    Builder,
    FiniteSet,
    Infinity,
    Interval,
    Listing,
    Named,
    Quantity,
    Relation,
    Scalar,
    SetOperation,
    Tuple,
    Value,
)


def met(answer: Value, expected: Value, scalars: Scalars) -> tuple[Value, Value]:
    """Without the name where only one of the two has one: `x = 5` and 5, `A = {1}` and {1}."""
    for one, other in ((answer, expected), (expected, answer)):
        if isinstance(one, Named) and isinstance(other, Relation):
            pair = _in_order(one, other)
            if pair is not None:
                return pair if one is answer else (pair[1], pair[0])
            defined = _defined(one, other)
            if defined is not None:
                return defined if one is answer else (defined[1], defined[0])
    if isinstance(answer, Named) and not isinstance(expected, Named | Relation):
        return answer.value, expected
    if isinstance(expected, Named) and not isinstance(answer, Named | Relation):
        return answer, expected.value
    if isinstance(answer, Listing) and isinstance(expected, Listing):
        return _renamed(answer, expected), expected
    if isinstance(expected, Tuple) and _says_interval(answer):
        # `(0, 1)` alone may be a point or an interval: an inequality or a union settles it.
        read = open_interval(*expected.items, scalars) if len(expected.items) == 2 else None
        return answer, read or expected
    if isinstance(answer, Relation) and not isinstance(expected, Relation | Named) and not is_set(expected):
        return _calculated(answer, scalars) or _unnamed(answer, expected), expected
    if isinstance(expected, Relation) and isinstance(answer, Scalar | Quantity | BaseNumber | Infinity):
        values = solved(expected)
        if values is not None and len(values) == 1:
            return answer, Scalar(next(iter(values.values())))
        left, *others = flat(expected)[0].operands
        if isinstance(left, Call) or _is_segment(left, *others) or _is_definition(left, *others):
            return answer, _unnamed(expected, answer)
    if isinstance(expected, Relation) and isinstance(answer, Interval) and len(solved(expected) or ()) > 1:
        answer = _point(answer)
    if isinstance(expected, Relation) and isinstance(answer, Listing | Tuple):
        return answer, _unnamed(expected, answer)
    return answer, expected


def _calculated(relation: Relation, scalars: Scalars) -> Value | None:
    """`5/16 = 0.3125` and `x = 17 + 25 = 42` as the last of them, where all are proved equal; else None."""
    match flat(relation):
        case [Comparison(operands, signs)] if set(signs) == {"=="}:
            sides = list(operands)
        case _:
            return None
    if isinstance(sides[0], Symbol):
        del sides[0]
    if len(sides) < 2 or any(map(symbols, sides)) or len(set(sides)) < len(sides):
        return None
    if any(scalars.compare(side, sides[-1]).truth is not Truth.EQUAL for side in sides[:-1]):
        return None
    return Scalar(sides[-1])


def _unnamed(relation: Relation, other: Value) -> Value:
    """`x = 5` as 5, `x = 2 or x = 3` as several answers, `y = 2x` as 2x; itself where it is none of these."""
    points = _points(relation) if isinstance(other, Listing | FiniteSet) else None
    if points is not None:
        return points
    parts = flat(relation)
    sides: list[Value] = []
    names: set[Expression] = set()
    for part in parts:
        if part.relations != ("==",):
            return relation
        left, right = part.operands
        is_name = isinstance(left, Symbol) or _is_value_of_unknown(left) or _is_segment(left, right)
        if not is_name or (isinstance(left, Symbol) and left.name in symbols(right)):
            return relation
        names.add(left)
        sides.append(Scalar(right))
    if len(sides) == 1:
        return sides[0] if isinstance(other, Scalar | Quantity | BaseNumber | Infinity) else relation
    if len(names) == 1 and relation.joined == "or":
        return Listing(tuple(sides)) if isinstance(other, Listing | FiniteSet) else relation
    if len(names) == len(sides) and relation.joined == "and" and isinstance(other, Tuple):
        letters = [name.name for name in names if isinstance(name, Symbol)]
        written = [part.operands[0] for part in parts]
        in_order = [side.name for side in written if isinstance(side, Symbol)] == sorted(letters)
        return Tuple(tuple(sides)) if len(letters) == len(sides) and in_order else relation
    return relation


def open_interval(low: Value, high: Value, scalars: Scalars) -> Interval | None:
    """What `(low, high)` says as an interval; None where its ends are not in rising order."""
    if not isinstance(low, Scalar | Infinity) or not isinstance(high, Scalar | Infinity):
        return None
    ends = _bound(low), _bound(high)
    if isinstance(ends[0], Infinity) or isinstance(ends[1], Infinity):
        rising = ends[0] == Infinity(-1) or ends[1] == Infinity(1)
    else:
        rising = not any(map(symbols, ends)) and scalars.order(*ends) == -1  # type: ignore[arg-type]
    return Interval(*ends, False, False) if rising else None


def _is_value_of_unknown(node: Expression) -> bool:
    """`f(2)`, and `p(x)` where it is defined."""
    if not isinstance(node, Call) or node.function in KNOWN:
        return False
    return node.function in ("f", "g", "h", "y") or all(isinstance(part, Symbol) for part in node.arguments)


def _points(relation: Relation) -> Listing | None:
    """`x = 1, y = 2 or x = 2, y = 1` as (1, 2) and (2, 1), with the names in the order of the alphabet; else None."""
    if relation.joined != "or":
        return None
    found: list[Value] = []
    for part in relation.parts:
        values = solved(part) if isinstance(part, Relation) and part.joined == "and" else None
        if values is None or len(values) < 2 or list(values) != sorted(values):
            return None
        found.append(Tuple(tuple(map(Scalar, values.values()))))
    names = {tuple(solved(part) or ()) for part in relation.parts if isinstance(part, Relation)}
    return Listing(tuple(found)) if len(names) == 1 else None


def _is_definition(left: Expression, *values: Expression) -> bool:
    """`a_n = 2^n` and `\\frac{dy}{dx} = 2x`: a sequence by its index, a derivative."""
    if not isinstance(left, Symbol) or len(values) != 1:
        return False
    _, _, foot = left.name.partition("_")
    return foot in symbols(values[0]) or "/" in left.name


def _is_segment(node: Expression, *values: Expression) -> bool:
    """AB of `AB = 5`: capital letters side by side, which name a length or are a product; 5 is the value of either."""
    letters = isinstance(node, Product) and all(
        isinstance(part, Symbol) and len(part.name) == 1 and part.name.isupper() for part in node.factors
    )
    return letters and not any(map(symbols, values))


def _renamed(answer: Listing, expected: Listing) -> Listing:
    """`f(x) = ax, a \\in R` with the parameter of `f(x) = cx, c \\in R`; as it is where that is no plain renaming."""
    match answer.items, expected.items:
        case (*items, Builder(name, within, None)), (*_, Builder(other, _, None)) if name != other:
            pass
        case _:
            return answer
    parts = [part for part in items if isinstance(part, Relation)]
    used = frozenset[str]().union(*map(free_symbols, parts))
    if len(parts) < len(items) or other in used or any(isinstance(piece, Relation) for p in parts for piece in p.parts):
        return answer
    renamed = [Relation(part.joined, tuple(_with_other(one, name, other) for one in flat(part))) for part in parts]
    return Listing((*renamed, Builder(other, within, None)))


def _with_other(of: Comparison, name: str, other: str) -> Comparison:
    return Comparison(tuple(substitute(side, name, Symbol(other)) for side in of.operands), of.relations)


def _defined(named: Named, relation: Relation) -> tuple[Value, Value] | None:
    """`f(x) = ` and cases beside `f(x) = |x|`: what they say of the same name; None for anything else."""
    parts = flat(relation)
    if len(parts) == 1 and parts[0].relations == ("==",) and named.name == Scalar(parts[0].operands[0]):
        return named.value, Scalar(parts[0].operands[1])
    return None


def _in_order(named: Named, relation: Relation) -> tuple[Value, Value] | None:
    """`(x, y) = (1, 2)` and `x = 1, y = 2` as two lists in the order of the names; None for anything else."""
    found = solved(relation)
    if found is None or not isinstance(named.name, Tuple) or not isinstance(named.value, Tuple):
        return None
    names = [part.of.name for part in named.name.items if isinstance(part, Scalar) and isinstance(part.of, Symbol)]
    if sorted(names) != sorted(found) or len(names) != len(named.name.items):
        return None
    return named.value, Tuple(tuple(Scalar(found[name]) for name in names))


def _says_interval(value: Value) -> bool:
    match value:
        case SetOperation() | Builder():
            return True
        case Relation():
            return only_symbol(value) is not None and not any("==" in part.relations for part in flat(value))
        case _:
            return False


def _point(of: Interval) -> Value:
    """An open interval read as the pair that it also looks like."""
    if of.closed_low or of.closed_high:
        return of
    return Tuple((end_of(of.low), end_of(of.high)))


def _bound(end: Scalar | Infinity) -> Expression | Infinity:
    return end if isinstance(end, Infinity) else end.of


def end_of(end: Expression | Infinity) -> Value:
    return end if isinstance(end, Infinity) else Scalar(end)
