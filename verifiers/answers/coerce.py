"""Aligns the kinds of two values: a named value and a bare one, a point that may be an interval, a calculation.

The expected answer determines how the answer is meant. Nothing is accepted here: the results are compared elsewhere.
"""

from __future__ import annotations

from verifiers.answers.algebra.equality import Truth
from verifiers.answers.algebra.rewriting import KNOWN
from verifiers.answers.algebra.scalars import Scalars
from verifiers.answers.bound_names import with_names_of
from verifiers.answers.compare_relations import solved
from verifiers.answers.compare_sets import is_set, only_symbol
from verifiers.answers.grammar import nodes as n
from verifiers.answers.grammar import values as v
from verifiers.answers.grammar.nodes import substitute, symbols
from verifiers.answers.grammar.number_words import COUNTED, DOLLARS
from verifiers.answers.grammar.traverse import comparisons, free_symbols


def is_value_of_unknown(node: n.Expression) -> bool:
    """True for a value of an unknown function, such as `f(2)`. Function names other than f, g, h, y count only with
    symbols as arguments, `p(x)`."""
    if not isinstance(node, n.FunctionCall) or node.function in KNOWN:
        return False
    return node.function in ("f", "g", "h", "y") or all(isinstance(part, n.Symbol) for part in node.arguments)


def is_definition(left: n.Expression, *values: n.Expression) -> bool:
    """True if an equation, given by its sides, defines a sequence (`a_n = 2^n`) or a derivative (`dy/dx = 2x`)."""
    if not isinstance(left, n.Symbol) or len(values) != 1:
        return False
    _, _, foot = left.name.partition("_")
    return foot in symbols(values[0]) or "/" in left.name


def is_segment(node: n.Expression, *values: n.Expression) -> bool:
    """True if an expression names a length between two points, as the `AB` of `AB = 5`. It is a product of single
    capital letters, equated to `values` without symbols."""
    letters = isinstance(node, n.Product) and all(
        isinstance(part, n.Symbol) and len(part.name) == 1 and part.name.isupper() for part in node.factors
    )
    return letters and not any(map(symbols, values))


def is_formula(relation: v.RelationValue) -> bool:
    """True for one equation that expresses its left symbol by others, such as `y = 2x + 1`. False for a relation among
    symbols of one kind: a letter with an index and another index of the same letter (`x_1 = 2x_2`), unless a word is
    the index (`R_{eq}` of R_1 and R_2); a letter with primes (`y' = 2y`); a letter alone on the right (`x = y`)."""
    match relation:
        case v.RelationValue(_, (n.ComparisonNode((n.Symbol(name), right), ("==",)),)):
            letter, _, foot = name.partition("_")
            others = symbols(right)
            feet = [other.partition("_")[2] for other in others if other.rstrip("'").partition("_")[0] == letter]
            siblings = foot and feet and (not _is_word(foot) or any(map(_is_word, feet)))
            alone = isinstance(right, n.Symbol)
            return bool(others) and name not in others and not ("'" in name or siblings or alone)
        case _:
            return False


def _is_word(foot: str) -> bool:
    return len(foot) > 1 and foot.isalpha() and foot.islower()


def coerced(answer: v.Value, expected: v.Value, scalars: Scalars) -> tuple[v.Value, v.Value]:
    """Converts an answer and the expected one to the same kind of value where they may mean the same. Examples: `x = 5`
    and 5, `A = {1}` and {1}. Bound variables get the names of the expected answer. Others are returned unchanged."""
    if isinstance(answer, v.Scalar) and isinstance(expected, v.Scalar):
        return answer, expected
    answer = with_names_of(expected, answer)
    for one, other in ((answer, expected), (expected, answer)):
        if isinstance(one, v.Named) and isinstance(other, v.RelationValue):
            pair = _in_order(one, other) or _defined(one, other)
            if pair is not None:
                return pair if one is answer else (pair[1], pair[0])
    if isinstance(answer, v.Scalar) != isinstance(expected, v.Scalar):
        answer, expected = _counted(answer, expected), _counted(expected, answer)
        answer, expected = _as_vector(answer, expected), _as_vector(expected, answer)
    if isinstance(answer, v.Named) and not isinstance(expected, v.Named | v.RelationValue):
        return _without_name(answer), expected
    if isinstance(expected, v.Named) and not isinstance(answer, v.Named | v.RelationValue):
        return answer, _without_name(expected)
    if isinstance(answer, v.Listing) and isinstance(expected, v.Listing):
        return _renamed(answer, expected), expected
    if isinstance(answer, v.RelationValue) and isinstance(expected, v.Listing | v.FiniteSet) and _solutions(answer):
        return v.Listing(tuple(map(v.Scalar, _solutions(answer).values()))), expected
    if (
        isinstance(answer, v.RelationValue)
        and not isinstance(expected, v.RelationValue | v.Named)
        and not is_set(expected)
    ):
        return _calculated(answer, scalars) or _unnamed(answer, expected), expected
    if isinstance(expected, v.RelationValue) and isinstance(answer, v.Scalar | v.Quantity | v.BaseNumber | v.Infinity):
        values = solved(expected)
        if values is not None and len(values) == 1:
            return answer, v.Scalar(next(iter(values.values())))
        left, *others = next(comparisons(expected)).operands
        if isinstance(left, n.FunctionCall) or is_segment(left, *others) or is_definition(left, *others):
            return answer, _unnamed(expected, answer)
        if is_formula(expected):
            return answer, v.Scalar(others[0])
    if isinstance(expected, v.RelationValue):
        if isinstance(answer, v.Listing | v.Tuple):
            return answer, _unnamed(expected, answer)
        if isinstance(answer, v.RelationValue):
            return _unnumbered(answer, expected), _unnumbered(expected, answer)
    return answer, expected


def _counted(value: v.Value, other: v.Value) -> v.Value:
    """Drops the dollar sign of `$18` or the noun of `12 people` if `other` is a bare number. Returns other values
    unchanged."""
    match value, other:
        case v.Quantity(of, ((name, 1),)), v.Scalar(number) if not symbols(number):
            whole = isinstance(of, n.Number) and of.value.denominator == 1
            return v.Scalar(of) if name in DOLLARS or (whole and name in COUNTED) else value
        case _:
            return value


VECTORS = (("unit i", "unit j", "unit k"), ("hat x", "hat y", "hat z"))


def _as_vector(value: v.Value, other: v.Value) -> v.Value:
    """Converts a sum of unit vectors, `3i - 4j`, to (3, -4) if `other` is a tuple or matrix. Returns other values
    unchanged."""
    if not isinstance(value, v.Scalar) or not isinstance(other, v.Tuple | v.Matrix):
        return value
    size = len(other.items) if isinstance(other, v.Tuple) else len(other.rows) * len(other.rows[0])
    found = _components(value.of)
    for names in VECTORS:
        if found and found.keys() <= set(names[:size]) and size < 4:
            return v.Tuple(tuple(v.Scalar(found.get(name, n.ZERO)) for name in names[:size]))
    return value


def _components(node: n.Expression) -> dict[str, n.Expression] | None:
    """Returns the coefficient of each unit vector in a sum such as `3i - 4j`; None for anything else."""
    match node:
        case n.Symbol(name) if any(name in names for names in VECTORS):
            return {name: n.ONE}
        case n.Negation(of):
            inside = _components(of)
            return inside and {name: n.Negation(value) for name, value in inside.items()}
        case n.Quotient(above, below):
            inside = _components(above)
            return inside and {name: n.Quotient(value, below) for name, value in inside.items()}
        case n.Product(factors):
            inside = _components(factors[-1])
            rest = factors[0] if len(factors) == 2 else n.Product(factors[:-1])
            return inside and {
                name: rest if value == n.ONE else n.Product((rest, value)) for name, value in inside.items()
            }
        case n.Sum(terms):
            found: dict[str, n.Expression] = {}
            for term in terms:
                inside = _components(term)
                if inside is None or found.keys() & inside:
                    return None
                found |= inside
            return found
        case _:
            return None


def _solutions(relation: v.RelationValue) -> dict[str, n.Expression]:
    """Returns the values of numbered solutions such as `x_1 = 2, x_2 = 3`, by name. Empty if the relation is anything
    else."""
    found = solved(relation) or {}
    letter = next(iter(found), "").partition("_")[0]
    return found if len(found) > 1 and list(found) == [f"{letter}_{place + 1}" for place in range(len(found))] else {}


def _unnumbered(relation: v.RelationValue, other: v.RelationValue) -> v.Value:
    """Converts `x_1 = 2, x_2 = 3` to `x = 2 or x = 3` if `other` is about x. Returns other relations unchanged."""
    found, unknown = _solutions(relation), only_symbol(other)
    if unknown is None or f"{unknown}_1" not in found:
        return relation
    return v.RelationValue(
        "or", tuple(n.ComparisonNode((n.Symbol(unknown), value), ("==",)) for value in found.values())
    )


def _letters(name: v.Value) -> list[str]:
    """Returns the symbols in a tuple of names such as `(x, y)`; empty for any other name."""
    if not isinstance(name, v.Tuple):
        return []
    found = [part.of.name for part in name.items if isinstance(part, v.Scalar) and isinstance(part.of, n.Symbol)]
    return found if len(set(found)) == len(name.items) else []


def _without_name(named: v.Named) -> v.Value:
    """Returns (1, 2) for both `(x, y) = (1, 2)` and `(y, x) = (2, 1)`. Other letters than x, y, z keep their names
    unless they are in alphabetical order."""
    letters = _letters(named.name)
    if letters == sorted(letters):
        return named.value
    if not set(letters) <= {"x", "y", "z"} or not isinstance(named.value, v.Tuple):
        return named
    items = named.value.items
    if len(items) != len(letters):
        return named
    return v.Tuple(tuple(items[place] for place in sorted(range(len(letters)), key=letters.__getitem__)))


def _calculated(relation: v.RelationValue, scalars: Scalars) -> v.Value | None:
    """Returns the last side of a chain such as `x = 17 + 25 = 42`. Returns None unless all sides are constants and
    proved equal."""
    match list(comparisons(relation)):
        case [n.ComparisonNode(operands, signs)] if set(signs) == {"=="}:
            sides = list(operands)
        case _:
            return None
    if isinstance(sides[0], n.Symbol):
        del sides[0]
    if len(sides) < 2 or any(map(symbols, sides)) or len(set(sides)) < len(sides):
        return None
    if any(scalars.compare(side, sides[-1]).truth is not Truth.EQUAL for side in sides[:-1]):
        return None
    return v.Scalar(sides[-1])


def _unnamed(relation: v.RelationValue, other: v.Value) -> v.Value:
    """Removes the name from `x = 5`, giving 5; `x = 2 or x = 3` gives several answers. Returns other relations
    unchanged."""
    points = _points(relation) if isinstance(other, v.Listing | v.FiniteSet) else None
    if points is not None:
        return points
    parts = list(comparisons(relation))
    sides: list[v.Value] = []
    names: set[n.Expression] = set()
    for part in parts:
        if part.relations != ("==",):
            return relation
        left, right = part.operands
        is_name = isinstance(left, n.Symbol) or is_value_of_unknown(left) or is_segment(left, right)
        if not is_name or (isinstance(left, n.Symbol) and left.name in symbols(right)):
            return relation
        names.add(left)
        sides.append(v.Scalar(right))
    if len(sides) == 1:
        return sides[0] if isinstance(other, v.Scalar | v.Quantity | v.BaseNumber | v.Infinity) else relation
    if len(names) == 1 and relation.joined == "or":
        return v.Listing(tuple(sides)) if isinstance(other, v.Listing | v.FiniteSet) else relation
    if len(names) == len(sides) and relation.joined == "and" and isinstance(other, v.Tuple):
        letters = [part.operands[0].name for part in parts if isinstance(part.operands[0], n.Symbol)]
        places = sorted(range(len(letters)), key=letters.__getitem__)
        in_order = letters == sorted(letters) or set(letters) <= {"x", "y", "z"}
        return v.Tuple(tuple(sides[place] for place in places)) if len(letters) == len(sides) and in_order else relation
    return relation


def open_interval(low: v.Value, high: v.Value, scalars: Scalars) -> v.Interval | None:
    """Converts two ends to an open interval; None if the ends are not proved to increase."""
    if not isinstance(low, v.Scalar | v.Infinity) or not isinstance(high, v.Scalar | v.Infinity):
        return None
    if isinstance(low, v.Scalar) and isinstance(high, v.Scalar):
        rising = not symbols(low.of, high.of) and scalars.order(low.of, high.of) == -1
    else:
        rising = low == v.Infinity(-1) or high == v.Infinity(1)
    below, above = (end.of if isinstance(end, v.Scalar) else end for end in (low, high))
    return v.Interval(below, above, False, False) if rising else None


def _points(relation: v.RelationValue) -> v.Listing | None:
    """Converts solutions such as `x = 1, y = 2 or x = 2, y = 1` to points. Returns None unless all alternatives name
    the same symbols in alphabetical order."""
    if relation.joined != "or":
        return None
    found: list[v.Value] = []
    for part in relation.parts:
        values = solved(part) if isinstance(part, v.RelationValue) and part.joined == "and" else None
        if values is None or len(values) < 2 or list(values) != sorted(values):
            return None
        found.append(v.Tuple(tuple(map(v.Scalar, values.values()))))
    names = {tuple(solved(part) or ()) for part in relation.parts if isinstance(part, v.RelationValue)}
    return v.Listing(tuple(found)) if len(names) == 1 else None


def _renamed(answer: v.Listing, expected: v.Listing) -> v.Listing:
    r"""Renames the parameter of a family such as `f(x) = ax, a \in R` to that of the expected answer. Only if nothing
    else about the parameter differs; returns other answers unchanged."""
    match answer.items, expected.items:
        case (*items, v.Builder(name, within, None)), (*_, v.Builder(other, _, None)) if name != other:
            pass
        case _:
            return answer

    def renaming(of: n.ComparisonNode) -> n.ComparisonNode:
        return n.ComparisonNode(tuple(substitute(side, {name: n.Symbol(other)}) for side in of.operands), of.relations)

    parts = [part for part in items if isinstance(part, v.RelationValue)]
    used = free_symbols(*parts)
    if (
        len(parts) < len(items)
        or other in used
        or any(isinstance(piece, v.RelationValue) for p in parts for piece in p.parts)
    ):
        return answer
    renamed = [v.RelationValue(part.joined, tuple(map(renaming, comparisons(part)))) for part in parts]
    return v.Listing((*renamed, v.Builder(other, within, None)))


def _defined(named: v.Named, relation: v.RelationValue) -> tuple[v.Value, v.Value] | None:
    """Removes the name that a value and an equation share: `f(x) = ` with cases, and `f(x) = |x|`. Returns None if the
    names differ."""
    parts = list(comparisons(relation))
    if len(parts) == 1 and parts[0].relations == ("==",) and named.name == v.Scalar(parts[0].operands[0]):
        return named.value, v.Scalar(parts[0].operands[1])
    return None


def _in_order(named: v.Named, relation: v.RelationValue) -> tuple[v.Value, v.Value] | None:
    """Converts `(x, y) = (1, 2)` and `x = 1, y = 2` to two tuples in the same order. Returns None if they do not name
    the same symbols."""
    found = solved(relation)
    if found is None or not isinstance(named.name, v.Tuple) or not isinstance(named.value, v.Tuple):
        return None
    names = [part.of.name for part in named.name.items if isinstance(part, v.Scalar) and isinstance(part.of, n.Symbol)]
    if sorted(names) != sorted(found) or len(names) != len(named.name.items):
        return None
    return named.value, v.Tuple(tuple(v.Scalar(found[name]) for name in names))
