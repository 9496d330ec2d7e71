"""Matches the members of two collections one to one, in any order.

Invariants: the verdict does not depend on the order of either side; nothing is equal unless every member has a partner
of its own; the comparisons of members are bounded.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import Generic, Protocol, Self, TypeVar

from verifiers.answers.algebra.equality import EqualityFinding, Truth, decided, different, equal, undecided
from verifiers.answers.algebra.scalars import Scalars
from verifiers.answers.grammar.lists import plain_numbers
from verifiers.answers.grammar.values import Value
from verifiers.answers.tolerance import Tolerance

MAX_MEMBERS = 200
MAX_COMPARISONS = 4_000
MAX_OPEN = 12
"""Maximum undecided comparisons of members: each may have cost an attempt at a proof."""

Member = TypeVar("Member")


class PartComparer(Protocol):
    """Comparison of the parts of two values, within a tolerance if there is one."""

    @property
    def scalars(self) -> Scalars: ...

    @property
    def tolerance(self) -> Tolerance | None: ...

    @property
    def exact(self) -> Self:
        """The same comparison without a tolerance."""

    def compare(self, answer: Value, expected: Value) -> EqualityFinding: ...


class TooManyError(Exception):
    """The collections need more comparisons than are allowed."""


class _Comparisons(Generic[Member]):
    """Truths of all pairs of members, each computed once and only when needed."""

    def __init__(
        self, first: Sequence[Member], second: Sequence[Member], same: Callable[[Member, Member], EqualityFinding]
    ) -> None:
        self.first, self.second, self.same = first, second, same
        self.known: dict[tuple[int, int], Truth] = {}
        self.opened = 0

    def truth(self, row: int, column: int) -> Truth:
        found = self.known.get((row, column))
        if found is None:
            if len(self.known) >= MAX_COMPARISONS or self.opened >= MAX_OPEN:
                raise TooManyError
            found = self.known[row, column] = self.same(self.first[row], self.second[column]).truth
            self.opened += found is Truth.OPEN
        return found

    def covers(self, accepted: frozenset[Truth]) -> bool:
        """True if each member of one side fits some member of the other."""
        rows, columns = range(len(self.first)), range(len(self.second))
        return all(any(self.truth(row, column) in accepted for row in _from(column, rows)) for column in columns) and (
            all(any(self.truth(row, column) in accepted for column in _from(row, columns)) for row in rows)
        )

    def pairs_up(self, accepted: frozenset[Truth]) -> bool:
        """True if the members can be paired so that each pair fits: a perfect matching by augmenting paths."""
        if len(self.first) != len(self.second):
            return False
        partner: dict[int, int] = {}

        def placed(row: int, tried: set[int]) -> bool:
            for column in _from(row, range(len(self.second))):
                if column not in tried and self.truth(row, column) in accepted:
                    tried.add(column)
                    if column not in partner or placed(partner[column], tried):
                        partner[column] = row
                        return True
            return False

        return all(placed(row, set()) for row in range(len(self.first)))


def _from(start: int, places: range) -> Iterable[int]:
    """Returns all places, the one at `start` first: members are mostly in the same order."""
    return (*places[start:], *places[:start])


SURE = frozenset({Truth.EQUAL})
POSSIBLE = frozenset({Truth.EQUAL, Truth.OPEN})


def matched(
    first: Sequence[Member],
    second: Sequence[Member],
    same: Callable[[Member, Member], EqualityFinding],
    *,
    repeats: bool,
    exact: Callable[[Member, Member], EqualityFinding] | None = None,
) -> EqualityFinding:
    """Decides if two collections have the same members in any order, using `same` to compare two members.

    With `repeats`, each member must also occur as often. `exact` is the comparison without a tolerance: within one,
    members of sets are paired as well, after repeated ones are dropped."""
    if first_numbers := plain_numbers(first):
        first = _by_value(first, first_numbers, repeats)
    if second_numbers := plain_numbers(second):
        second = _by_value(second, second_numbers, repeats)
    if first_numbers and second_numbers:
        return _paired_in_order(first, second, same)
    if max(len(first), len(second)) > MAX_MEMBERS:
        return undecided(f"more than {MAX_MEMBERS} members")
    try:
        return _matched(first, second, same, repeats, exact)
    except TooManyError:
        return undecided("too many comparisons of members")


def _by_value(items: Sequence[Member], numbers: Sequence[Fraction], repeats: bool) -> Sequence[Member]:
    """Sorts written numbers by value; without `repeats`, keeps one of each value."""
    pairs = sorted(zip(numbers, range(len(items)), strict=True))
    places = [place for _, place in pairs] if repeats else dict(pairs).values()
    return [items[place] for place in places]


def _paired_in_order(
    first: Sequence[Member], second: Sequence[Member], same: Callable[[Member, Member], EqualityFinding]
) -> EqualityFinding:
    """Compares sorted numbers place by place. If any pairing within a tolerance exists, this one does: both bounds of
    what is close to a number rise with it."""
    if len(first) != len(second):
        return different(f"{len(first)} members where {len(second)} were expected")
    return decided((same(one, other) for one, other in zip(first, second, strict=True)), "the same members")


def _matched(
    first: Sequence[Member],
    second: Sequence[Member],
    same: Callable[[Member, Member], EqualityFinding],
    repeats: bool,
    exact: Callable[[Member, Member], EqualityFinding] | None,
) -> EqualityFinding:
    opened = False
    if not repeats and exact is not None:
        (first, unsure), (second, unsure_too) = _distinct(first, exact), _distinct(second, exact)
        opened = unsure or unsure_too
    one_to_one = repeats or exact is not None
    if one_to_one and len(first) != len(second):
        if opened:
            return undecided("equality of two members is undecided")
        return different(f"{len(first)} members where {len(second)} were expected")
    table = _Comparisons(first, second, same)
    fits = table.pairs_up if one_to_one else table.covers
    if fits(SURE):
        return undecided("equality of two members is undecided") if opened else equal("the same members")
    if fits(POSSIBLE) or opened:
        return undecided("equality of two members is undecided")
    return different("not the same members")


def _distinct(items: Sequence[Member], exact: Callable[[Member, Member], EqualityFinding]) -> tuple[list[Member], bool]:
    """Drops members that are proved equal to an earlier one. The flag is true if two members may be equal."""
    kept: list[Member] = []
    truths: Counter[Truth] = Counter()
    for item in dict.fromkeys(items):
        for other in kept:
            if truths.total() >= MAX_COMPARISONS or truths[Truth.OPEN] >= MAX_OPEN:
                raise TooManyError
            truth = exact(item, other).truth
            truths[truth] += 1
            if truth is Truth.EQUAL:
                break
        else:
            kept.append(item)
    return kept, truths[Truth.OPEN] > 0
