"""Values of terms: exact, in Python's own numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from verifiers.smt.language.errors import Undefined
from verifiers.smt.language.terms import Function, Sort


@dataclass(frozen=True, slots=True)
class Element:
    """An element of a declared SMT sort, equal only to itself."""

    name: str


@dataclass(frozen=True, slots=True)
class ArrayValue:
    """An array with the default element at all but finitely many indices."""

    default: Value
    entries: tuple[tuple[Value, Value], ...] = ()
    """Entries sorted by the index's text; none is the default."""

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
    """A function given by finitely many entries and a default value."""

    entries: Mapping[tuple[Value, ...], Value]
    default: Value


Interpretation = Mapping[Function, Value | FunctionTable]
"""Value of each constant and table of each function. Missing symbols have no value."""


def same(left: Value, right: Value, sort: Sort) -> bool:
    """True if two values of an SMT sort are equal; arrays are compared at every index. Raises Undefined if that depends
    on a declared sort, of unknown size."""
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
    """Returns the number of elements of an SMT sort; None if infinite. Raises Undefined for a declared sort."""
    if sort.declared:
        raise Undefined("the size of a declared sort is unknown")
    if sort.name == "Bool":
        return 2
    return 1 << sort.width if sort.name == "BitVec" else None
