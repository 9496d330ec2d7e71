"""Sets of real numbers in canonical form: two sets are equal exactly if their forms are.

A set is cut at finitely many points, which are exact constants in rising order; each point and each gap between points
belongs to the set or not. Redundant points are dropped. A set restricted to the whole or the rational numbers drops
information about other numbers.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from verifiers.answers.algebra.intervals import OpenError
from verifiers.answers.algebra.scalars import Scalars
from verifiers.answers.grammar.nodes import ONE, ZERO, Expression, Product, Sum, number
from verifiers.answers.grammar.rational import rational

MAX_CUTS = 400
MAX_WHOLE = 1_000
"""Maximum whole numbers of a bounded set to list."""

Kind = Literal["real", "rational", "whole"]


class UndecidedError(Exception):
    """The value is not a representable set of real numbers, or the order of two points is open."""


@dataclass(frozen=True)
class RealSet:
    kind: Kind
    cuts: tuple[Expression, ...] = ()
    at: tuple[bool, ...] = ()
    gaps: tuple[bool, ...] = (False,)
    """Membership of gaps: `gaps[i]` lies below `cuts[i]`; one more than there are cuts."""

    @property
    def empty(self) -> bool:
        return not any(self.at) and not any(self.gaps)

    @property
    def points(self) -> list[Expression]:
        """Returns the single points and interval ends that belong to a set of real numbers."""
        return [cut for cut, held in zip(self.cuts, self.at, strict=True) if held]


NOTHING = RealSet("real")
REALS = RealSet("real", gaps=(True,))


def interval(
    low: Expression | None, high: Expression | None, closed_low: bool, closed_high: bool, scalars: Scalars
) -> RealSet:
    """Builds an interval of real numbers; None stands for an infinite end. Raises UndecidedError if it is unclear which
    end is larger."""
    if low is None:
        return REALS if high is None else RealSet("real", (high,), (closed_high,), (True, False))
    if high is None:
        return RealSet("real", (low,), (closed_low,), (False, True))
    match scalars.order(low, high):
        case -1:
            return RealSet("real", (low, high), (closed_low, closed_high), (False, True, False))
        case 0:
            return RealSet("real", (low,), (closed_low and closed_high,), (False, False))
        case 1:
            return NOTHING
        case _:
            raise UndecidedError("the order of an interval's ends is undecided")


def finite(points: list[Expression], scalars: Scalars) -> RealSet:
    return _of_points(ordered_cuts(points, scalars))


def _of_points(ordered: tuple[Expression, ...]) -> RealSet:
    return RealSet("real", ordered, (True,) * len(ordered), (False,) * (len(ordered) + 1))


def ordered_cuts(points: list[Expression], scalars: Scalars) -> tuple[Expression, ...]:
    """Sorts real constants in rising order and drops duplicates. Raises UndecidedError if the order of two is not
    proven."""
    if len(points) > MAX_CUTS:
        raise UndecidedError("too many points")
    found: list[Expression] = []
    for point in points:
        low, high = 0, len(found)
        while low < high:
            middle = (low + high) // 2
            order = scalars.order(point, found[middle])
            if order is None:
                raise UndecidedError("the order of two points is undecided, or they are not real")
            if order == 0:
                break
            low, high = (low, middle) if order < 0 else (middle + 1, high)
        else:
            found.insert(low, point)
    return tuple(found)


def combined(first: RealSet, second: RealSet, keep: Callable[[bool, bool], bool], scalars: Scalars) -> RealSet:
    """Combines two sets of real numbers into a canonical one. `keep` tells if a point belongs to it, from its
    membership in each of the two. Raises UndecidedError if the result cannot be represented, such as reals mixed with
    whole numbers."""
    kind = _kind(first, second, keep)
    cuts = ordered_cuts([*first.cuts, *second.cuts], scalars)
    one, other = _spread(first, cuts, scalars), _spread(second, cuts, scalars)
    found = RealSet(kind, cuts, tuple(map(keep, one.at, other.at)), tuple(map(keep, one.gaps, other.gaps)))
    return canonical(found, scalars)


def union(first: RealSet, second: RealSet, scalars: Scalars) -> RealSet:
    return combined(first, second, operator.or_, scalars)


def intersection(first: RealSet, second: RealSet, scalars: Scalars) -> RealSet:
    return combined(first, second, operator.and_, scalars)


def without(first: RealSet, second: RealSet, scalars: Scalars) -> RealSet:
    return combined(first, second, lambda a, b: a and not b, scalars)


def _kind(first: RealSet, second: RealSet, keep: Callable[[bool, bool], bool]) -> Kind:
    if first.kind == second.kind or second.empty:
        return first.kind
    if first.empty:
        return second.kind
    intersects = not keep(True, False) and not keep(False, True)
    removes = keep(True, False) and not keep(False, True) and not keep(True, True)
    kinds = {first.kind, second.kind}
    if intersects:
        return "whole" if "whole" in kinds else "rational"
    if removes and second.kind == "real":
        return first.kind
    for part, other in ((first, second), (second, first)):
        if (
            not removes
            and part.kind == "real"
            and not any(part.gaps)
            and all(_is_of(c, other.kind) for c in part.points)
        ):
            return other.kind
    raise UndecidedError("a mixture of number sets")


def _is_of(cut: Expression, kind: Kind) -> bool:
    value = rational(cut)
    return value is not None and (kind != "whole" or value.denominator == 1)


def _spread(of: RealSet, cuts: tuple[Expression, ...], scalars: Scalars) -> RealSet:
    """Returns the same set of real numbers cut at all of `cuts`, a sorted superset of its own cuts."""
    at: list[bool] = []
    gaps = [of.gaps[0]]
    position = 0
    for cut in cuts:
        if position < len(of.cuts) and scalars.order(cut, of.cuts[position]) == 0:
            at.append(of.at[position])
            position += 1
        else:
            at.append(of.gaps[position])
        gaps.append(of.gaps[position])
    return RealSet(of.kind, cuts, tuple(at), tuple(gaps))


def canonical(of: RealSet, scalars: Scalars) -> RealSet:
    """Returns the canonical form of a set of real numbers: equal sets get equal forms. Raises UndecidedError if it is
    not proven."""
    if of.kind == "whole":
        return _whole(of, scalars)
    cuts: list[Expression] = []
    at: list[bool] = []
    gaps = [of.gaps[0]]
    for index, cut in enumerate(of.cuts):
        held = of.at[index]
        if of.kind == "rational" and rational(cut) is None:
            raise UndecidedError("an end may be rational or irrational")
        if held == gaps[-1] == of.gaps[index + 1]:
            continue
        cuts.append(cut)
        at.append(held)
        gaps.append(of.gaps[index + 1])
    return RealSet(of.kind if any(gaps) else "real", tuple(cuts), tuple(at), tuple(gaps))


def _whole(of: RealSet, scalars: Scalars) -> RealSet:
    """Returns the canonical form of a set of integers: cuts lie midway between integers; bounded sets are listed."""
    marks = sorted({floor_of(cut, scalars) + step for cut in of.cuts for step in (0, 1)})
    state = of.gaps[0]
    changes: list[int] = []
    # A cut is below the upper mark of its pair, so points between two pairs are alike.
    for mark in marks:
        if holds(of, number(mark), scalars) != state:
            state = not state
            changes.append(mark)
    if not of.gaps[0] and not state:
        # A bounded set of whole numbers is a finite set.
        runs = list(zip(changes[::2], changes[1::2], strict=True))
        if sum(high - low for low, high in runs) > MAX_WHOLE:
            raise UndecidedError("too many whole numbers to list")
        return _of_points(tuple(number(member) for low, high in runs for member in range(low, high)))
    cuts = tuple(number(Fraction(2 * mark - 1, 2)) for mark in changes)
    gaps = tuple(of.gaps[0] != bool(index % 2) for index in range(len(cuts) + 1))
    return RealSet("whole", cuts, (False,) * len(cuts), gaps)


def floor_of(cut: Expression, scalars: Scalars) -> int:
    value = rational(cut)
    if value is not None:
        return math.floor(value)
    try:
        found = scalars.enclosed(cut)
    except OpenError as error:
        raise UndecidedError("the size of an end is undecided") from error
    low, high = math.floor(found[0]), math.floor(found[1])
    if low != high:
        raise UndecidedError("an end is too close to a whole number")
    return low


def holds(of: RealSet, point: Expression, scalars: Scalars) -> bool:
    """True if a real point lies in the intervals and points of a set. A restriction of the set to whole or rational
    numbers is ignored. Raises UndecidedError if the order of the point and a cut is not proven."""
    for index, cut in enumerate(of.cuts):
        order = scalars.order(point, cut)
        if order is None:
            raise UndecidedError("the order of two points is undecided")
        if order <= 0:
            return of.at[index] if order == 0 else of.gaps[index]
    return of.gaps[-1]


def difference(first: RealSet, second: RealSet, scalars: Scalars) -> Expression | str | None:
    """Compares two canonical sets of real numbers. Returns None if they are equal, a number that is in only one of
    them, or a reason in words. Raises UndecidedError if the order of two points is not proven."""
    if first.kind != second.kind:
        return _kinds_differ(first, second)
    cuts = ordered_cuts([*first.cuts, *second.cuts], scalars)
    one, other = _spread(first, cuts, scalars), _spread(second, cuts, scalars)
    for index, cut in enumerate(cuts):
        if one.at[index] != other.at[index]:
            return cut
    for index in range(len(cuts) + 1):
        if one.gaps[index] != other.gaps[index]:
            return inside_gap(cuts, index)
    return None


def alike(first: RealSet, second: RealSet, close: Callable[[Expression, Expression], bool]) -> bool:
    """True if two canonical sets have the same shape, and each point and end of one is close to that of the other."""
    shapes = [(of.kind, of.at, of.gaps) for of in (first, second)]
    return shapes[0] == shapes[1] and "whole" not in shapes[0] and all(map(close, first.cuts, second.cuts))


def _kinds_differ(first: RealSet, second: RealSet) -> str:
    for part in (first, second):
        if any(part.gaps) and part.kind != "whole":
            return "one is dense in an interval where the other is not"
    return "one is finite, the other is not"


def inside_gap(cuts: tuple[Expression, ...], index: int) -> Expression:
    """Returns a point strictly between two neighbouring cuts, below the first or above the last. `index` is that of the
    cut above."""
    if not cuts:
        return ZERO
    if index == 0:
        return Sum((cuts[0], number(-1)))
    if index == len(cuts):
        return Sum((cuts[-1], ONE))
    return Product((Sum((cuts[index - 1], cuts[index])), number(Fraction(1, 2))))
