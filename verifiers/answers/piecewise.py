"""Compares values by cases: equal if they are equal on every piece on which both are one expression.

Conditions are about one symbol and become sets of real numbers. Both sides must have a value for the same numbers; on
an interval the two expressions must be equal everywhere, with absolute values resolved if their sign is certain there;
at a single point their values must be equal. Overlapping cases must agree.
"""

from __future__ import annotations

from functools import reduce
from itertools import combinations, product

from verifiers.answers.algebra import real_sets as r
from verifiers.answers.algebra.calculus import UnresolvedError
from verifiers.answers.algebra.equality import EqualityFinding, Truth, decided, different, equal, undecided
from verifiers.answers.algebra.scalars import Scalars
from verifiers.answers.algebra.solving import MAX_ABSOLUTE, absolutes, inequality_set, zeros
from verifiers.answers.compare_sets import only_symbol, real_set
from verifiers.answers.format import written
from verifiers.answers.grammar import nodes as n
from verifiers.answers.grammar.errors import GrammarError, UndefinedError
from verifiers.answers.grammar.nodes import ONE, ZERO, replaced, substitute, symbols
from verifiers.answers.grammar.values import Piecewise, RelationValue

Piece = tuple[n.Expression, r.RealSet]


def compare_piecewise(answer: Piecewise, expected: Piecewise, scalars: Scalars) -> EqualityFinding:
    """Compares two values that are defined by cases. Raises GrammarError if a part has no value."""
    name = _symbol(answer) or _symbol(expected)
    if name is None or any(_symbol(side) not in (name, None) for side in (answer, expected)):
        return undecided("conditions that are not about one symbol")
    try:
        first, second = _pieces(answer, scalars), _pieces(expected, scalars)
        witness = r.difference(_domain(first, scalars), _domain(second, scalars), scalars)
        if witness is not None:
            return different("one has a value where the other has none")
        for pieces in (first, second):
            for one, other in combinations(pieces, 2):
                if _on_both(one, other, name, scalars).truth is not Truth.EQUAL:
                    return undecided("cases that overlap and may disagree")
        findings = (_on_both(one, other, name, scalars) for one, other in product(first, second))
        return decided(findings, "equal on every piece")
    except r.UndecidedError as error:
        return undecided(str(error))


def has_sign(node: n.Expression) -> bool:
    return any(isinstance(part, n.FunctionCall) and part.function == "sign" and symbols(part) for part in n.walk(node))


def compare_signs(answer: n.Expression, expected: n.Expression, scalars: Scalars) -> EqualityFinding:
    """Compares two expressions with the sign of one term u: where u is zero, positive and negative. Raises GrammarError
    if a part has no value."""
    names = symbols(answer, expected)
    both = n.Sum((answer, expected))
    inside = {call.arguments[0] for name in names for call in absolutes(both, name, ("sign",))}
    if len(names) != 1 or len(inside) != 1:
        return undecided("the signs of several terms")
    (name,), (term,) = names, inside
    try:
        found = list(zeros(scalars.read(term), name, scalars, real=True))
    except (r.UndecidedError, UnresolvedError) as error:
        return undecided(str(error))
    for point, truth in found:
        if truth is Truth.EQUAL:
            continue
        try:
            at_point = scalars.compare(*(substitute(side, {name: point}) for side in (answer, expected)))
        except UndefinedError:
            continue
        if at_point.truth is not Truth.EQUAL:
            return at_point
    sides = [RelationValue("and", (n.ComparisonNode((term, ZERO), (sign,)),)) for sign in (">", "<")]
    one, other = (Piecewise(tuple((node, side) for side in sides)) for node in (answer, expected))
    return compare_piecewise(one, other, scalars)


def _symbol(of: Piecewise) -> str | None:
    """Returns the only symbol in the conditions of a value by cases; None for none or several."""
    names = {only_symbol(condition) for _, condition in of.branches if condition is not None}
    return next(iter(names)) if len(names) == 1 else None


def _pieces(of: Piecewise, scalars: Scalars) -> list[Piece]:
    found: list[Piece] = []
    for value, condition in of.branches:
        if condition is not None:
            found.append((value, real_set(condition, scalars)))
        else:
            found.append((value, r.without(r.REALS, _domain(found, scalars), scalars)))
    return found


def _domain(pieces: list[Piece], scalars: Scalars) -> r.RealSet:
    return reduce(lambda total, piece: r.union(total, piece[1], scalars), pieces, r.NOTHING)


def _on_both(first: Piece, second: Piece, name: str, scalars: Scalars) -> EqualityFinding:
    """Compares the values of two cases where the conditions of both hold."""
    where = r.intersection(first[1], second[1], scalars)
    if where.empty:
        return equal("the conditions never hold together")
    if not any(where.gaps):
        return _at_points(first[0], second[0], where.points, name, scalars)
    one, other = (_without_absolutes(value, where, name, scalars) for value in (first[0], second[0]))
    found = scalars.compare(one, other)
    if found.truth is not Truth.DIFFERENT:
        return found
    if where.kind == "real":
        points = [point for index, held in enumerate(where.gaps) if held for point in _inside(where.cuts, index)]
        sampled = _at_points(one, other, points, name, scalars)
        if sampled.truth is Truth.DIFFERENT:
            return different("their values differ on an interval", sampled.witness)
    return undecided("equality on an interval is undecided")


def _inside(cuts: tuple[n.Expression, ...], index: int) -> tuple[n.Expression, ...]:
    """Returns three points inside a gap between cuts, because two different functions may meet at one of them."""
    middle = r.inside_gap(cuts, index)
    halves = (*cuts[:index], middle, *cuts[index:])
    return middle, r.inside_gap(halves, index), r.inside_gap(halves, index + 1)


def _at_points(
    first: n.Expression, second: n.Expression, points: list[n.Expression], name: str, scalars: Scalars
) -> EqualityFinding:
    opened = False
    for point in points:
        try:
            found = scalars.compare(substitute(first, {name: point}), substitute(second, {name: point}))
        except GrammarError:
            opened = True
            continue
        if found.truth is Truth.DIFFERENT:
            return different("their values differ at a point", {name: written(point)})
        opened = opened or found.truth is Truth.OPEN
    return undecided("a value at a point is undecided") if opened else equal("equal at each point")


def _without_absolutes(node: n.Expression, where: r.RealSet, name: str, scalars: Scalars) -> n.Expression:
    """Rewrites |u| as u or -u, and the sign of u as 1 or -1, where u is proved to keep its sign on a set of values."""
    found = absolutes(node, name, ("abs", "sign"))
    if len(found) > MAX_ABSOLUTE:
        return node
    for absolute in found:
        inside = absolute.arguments[0]
        ways: tuple[tuple[n.Relation, n.Expression], ...] = ((">=", inside), ("<=", n.Negation(inside)))
        if absolute.function == "sign":
            ways = ((">", ONE), ("<", n.number(-1)))
        for side, value in ways:
            holds = inequality_set(n.ComparisonNode((inside, ZERO), (side,)), name, scalars)
            if r.difference(r.intersection(where, holds, scalars), where, scalars) is None:
                node = replaced(node, absolute, value)
                break
    return node
