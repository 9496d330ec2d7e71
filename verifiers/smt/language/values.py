"""Values of terms: exact, in Python's own numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from verifiers.smt.language.errors import Undefined
from verifiers.smt.language.terms import Function, Sort


@dataclass(frozen=True, slots=True)
class Element:
    """An element of a declared sort: equal to itself alone."""

    name: str


@dataclass(frozen=True, slots=True)
class ArrayValue:
    """One element at all but finitely many indices."""

    default: Value
    entries: tuple[tuple[Value, Value], ...] = ()
    """Sorted by how the index is written; none holds the default."""

    def at(self, index: Value) -> Value:
        for known, element in self.entries:
            if known == index:
                return element
        return self.default

    def with_entry(self, index: Value, element: Value) -> ArrayValue:
        entries = {known: held for known, held in self.entries if known != index}
        if element != self.default:
            entries[index] = element
        return ArrayValue(self.default, tuple(sorted(entries.items(), key=repr)))


Value = bool | int | Fraction | Element | ArrayValue


@dataclass(frozen=True, slots=True)
class FunctionTable:
    """A function by its values at finitely many places, and its value elsewhere."""

    entries: Mapping[tuple[Value, ...], Value]
    default: Value


Interpretation = Mapping[Function, Value | FunctionTable]
"""Constants by their value, functions by their table. One that lacks a symbol leaves it without a value."""


def same(left: Value, right: Value, sort: Sort) -> bool:
    """Whether two values of one sort are equal. Raises Undefined for arrays over a sort whose size is not known."""
    if not (isinstance(left, ArrayValue) and isinstance(right, ArrayValue)):
        return left == right
    index, element = sort.parameters
    places = {place for place, _ in (*left.entries, *right.entries)}
    if not all(same(left.at(place), right.at(place), element) for place in places):
        return False
    if same(left.default, right.default, element):
        return True
    size = _size(index)
    return size is not None and len(places) >= size


def _size(sort: Sort) -> int | None:
    """How many elements; None for infinitely many."""
    if sort.declared:
        raise Undefined("how many elements a declared sort has is not known")
    if sort.name == "Bool":
        return 2
    return 1 << sort.width if sort.name == "BitVec" else None
