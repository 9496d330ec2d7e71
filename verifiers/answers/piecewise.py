"""Values by cases: equal when they are equal on every piece on which both are one expression.

Conditions are about one symbol and become sets of real numbers. Both sides must have a value for the same numbers; on a
stretch the two expressions must be equal everywhere, with absolute values resolved where their sign is certain there;
at a single point their values must be. Cases that overlap must agree where they do.
"""

from __future__ import annotations

from verifiers.answers.compare_sets import only_symbol, real_set
from verifiers.answers.equality import Finding, Truth
from verifiers.answers.grammar.errors import GrammarError
from verifiers.answers.grammar.nodes import Call, Comparison, Expression, Negation, substitute, symbols, walk
from verifiers.answers.real_sets import (
    NOTHING,
    REALS,
    RealSet,
    UndecidedError,
    canonical,
    combined,
    difference,
    inside_gap,
)
from verifiers.answers.rewriting import mapped
from verifiers.answers.scalars import ZERO, Scalars
from verifiers.answers.solving import both, either, inequality_set
from verifiers.answers.values import Piecewise
from verifiers.answers.writing import written

Piece = tuple[Expression, RealSet]
MAX_ABSOLUTE = 4


def compare_piecewise(answer: Piecewise, expected: Piecewise, scalars: Scalars) -> Finding:
    """Raises GrammarError where a part has no value."""
    name = _symbol(answer) or _symbol(expected)
    if name is None or any(_symbol(side) not in (name, None) for side in (answer, expected)):
        return Finding(Truth.OPEN, "conditions that are not about one symbol")
    try:
        first, second = _pieces(answer, scalars), _pieces(expected, scalars)
        witness = difference(_domain(first, scalars), _domain(second, scalars), scalars)
        if witness is not None:
            return Finding(Truth.DIFFERENT, "one has a value where the other has none")
        for pieces in (first, second):
            for index, piece in enumerate(pieces):
                for other in pieces[index + 1 :]:
                    if _on_both(piece, other, name, scalars).truth is not Truth.EQUAL:
                        return Finding(Truth.OPEN, "cases that overlap and may disagree")
        opened: Finding | None = None
        for piece in first:
            for other in second:
                found = _on_both(piece, other, name, scalars)
                if found.truth is Truth.DIFFERENT:
                    return found
                opened = opened or (found if found.truth is Truth.OPEN else None)
    except UndecidedError as error:
        return Finding(Truth.OPEN, str(error))
    return opened or Finding(Truth.EQUAL, "equal on every piece")


def _symbol(of: Piecewise) -> str | None:
    """The symbol that the conditions are about; None where there is none, or more than one."""
    names = {only_symbol(condition) for _, condition in of.branches if condition is not None}
    return next(iter(names)) if len(names) == 1 else None


def _pieces(of: Piecewise, scalars: Scalars) -> list[Piece]:
    found: list[Piece] = []
    for value, condition in of.branches:
        if condition is not None:
            found.append((value, real_set(condition, scalars)))
        else:
            rest = combined(REALS, _domain(found, scalars), lambda a, b: a and not b, scalars)
            found.append((value, canonical(rest, scalars)))
    return found


def _domain(pieces: list[Piece], scalars: Scalars) -> RealSet:
    total = NOTHING
    for _, where in pieces:
        total = canonical(either(total, where, scalars), scalars)
    return total


def _on_both(first: Piece, second: Piece, name: str, scalars: Scalars) -> Finding:
    """Where both conditions hold."""
    where = canonical(both(first[1], second[1], scalars), scalars)
    if where.empty:
        return Finding(Truth.EQUAL, "nowhere both")
    if not any(where.gaps):
        return _at_points(
            first[0], second[0], [c for c, held in zip(where.cuts, where.at, strict=True) if held], name, scalars
        )
    one, other = (_without_absolutes(value, where, name, scalars) for value in (first[0], second[0]))
    found = scalars.compare(one, other)
    if found.truth is not Truth.DIFFERENT:
        return found
    if where.kind == "real":
        points = [point for index, held in enumerate(where.gaps) if held for point in _inside(where.cuts, index)]
        told = _at_points(one, other, points, name, scalars)
        if told.truth is Truth.DIFFERENT:
            return Finding(Truth.DIFFERENT, "their values differ on a stretch", told.witness)
    return Finding(Truth.OPEN, "whether two values agree on a stretch is open")


def _inside(cuts: tuple[Expression, ...], index: int) -> tuple[Expression, ...]:
    """Three points of a gap: values that differ may meet in one of them."""
    middle = inside_gap(cuts, index)
    halves = (*cuts[:index], middle, *cuts[index:])
    return middle, inside_gap(halves, index), inside_gap(halves, index + 1)


def _at_points(first: Expression, second: Expression, points: list[Expression], name: str, scalars: Scalars) -> Finding:
    opened = False
    for point in points:
        try:
            found = scalars.compare(substitute(first, name, point), substitute(second, name, point))
        except GrammarError:
            opened = True
            continue
        if found.truth is Truth.DIFFERENT:
            return Finding(Truth.DIFFERENT, "their values differ at a point", {name: written(point)})
        opened = opened or found.truth is Truth.OPEN
    return Finding(Truth.OPEN, "a value at a point is open") if opened else Finding(Truth.EQUAL, "equal at each point")


def _without_absolutes(node: Expression, where: RealSet, name: str, scalars: Scalars) -> Expression:
    """The same value for every number of a set, with |u| as u or -u where u changes no sign in it."""
    absolutes = [
        part for part in walk(node) if isinstance(part, Call) and part.function == "abs" and name in symbols(part)
    ]
    if len(absolutes) > MAX_ABSOLUTE:
        return node
    for absolute in sorted(absolutes, key=lambda part: sum(1 for _ in walk(part))):
        inside = absolute.arguments[0]
        for side, value in ((">=", inside), ("<=", Negation(inside))):
            holds = inequality_set(Comparison((inside, ZERO), (side,)), name, scalars)  # type: ignore[arg-type]
            if difference(canonical(both(where, holds, scalars), scalars), where, scalars) is None:
                node = _replaced(node, absolute, value)
                break
    return node


def _replaced(node: Expression, old: Expression, new: Expression) -> Expression:
    return mapped(node, lambda part: new if part == old else None)
