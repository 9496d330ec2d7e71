"""Objects of a compiled Lean file: finds where each begins and checks that each has the kind that its place requires.

Lean maps a compiled file and never checks what an object is, so a hand-made file could make it confuse types or read
outside the file.

Invariants: only the standard library; nothing outside the bytes is read; linear in the file; no object reaches itself.
An unknown form is OleanError; what no Lean writes is AlteredError. Source: src/runtime/compact.cpp, src/Lean/Expr.lean,
src/Lean/Level.lean, src/Lean/Declaration.lean; Lean 4.35.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import Enum, auto
from typing import NamedTuple

from verifiers.lean.olean import (
    ARRAY,
    CONSTANTS,
    ENTRIES,
    EXTRA_NAMES,
    FIELDS_OF_MODULE,
    HEADERS,
    IMPORTS,
    NAMES,
    NUM,
    STR,
    STRING,
    Olean,
    OleanError,
)

NOTHING = 1
"""Boxed 0: the empty list, the anonymous name, the universe level zero."""
CONSTRUCTORS = 244
"""Highest tag of a constructor object."""
SCALARS, BIG, THUNK, TASK = 248, 250, 251, 252
LARGEST_SMALL = (1 << 63) - 1
"""Largest number that is stored without an object."""
BOUND, SORT, CONST, APP, LAMBDA, PI, LET, LITERAL, NOTE, PROJECTION = 0, 3, 4, 5, 6, 7, 8, 9, 10, 11
PARAMETER = 4


class AlteredError(OleanError):
    """A compiled file has content that Lean never writes."""


class Slot(Enum):
    """Kind of object that a place in a compiled Lean file requires."""

    NAME = auto()
    STRING = auto()
    NATURAL = auto()
    LEVEL = auto()
    TERM = auto()
    LITERAL = auto()
    HINTS = auto()
    RULE = auto()
    VALUE = auto()
    """Common part of every declaration: name, universe parameters and type."""
    NAMES = auto()
    LEVELS = auto()
    RULES = auto()
    IMPORT = auto()
    DECLARATION = auto()
    AXIOM = auto()
    DEFINITION = auto()
    THEOREM = auto()
    OPAQUE = auto()
    QUOTIENT = auto()
    INDUCTIVE = auto()
    CONSTRUCTOR = auto()
    RECURSOR = auto()
    NOTE = auto()
    """Elaborator's note on a term. Not examined: it is removed before Lean sees the file."""


class Fields(NamedTuple):
    slots: tuple[Slot, ...]
    scalars: int = 0
    """Required scalar bytes behind the fields."""
    most: tuple[int, ...] = ()
    """Maximum value of each of the last scalar bytes. Lean's own code disagrees on the meaning of higher ones."""


N, S, T = Slot.NAMES, Slot.NATURAL, Slot.TERM
FLAG, BINDER, SAFETY, QUOTIENT = (1,), (3,), (2,), (3,)
LISTS = {Slot.NAMES: Slot.NAME, Slot.LEVELS: Slot.LEVEL, Slot.RULES: Slot.RULE}
FIELDS: dict[tuple[Slot, int], Sequence[Fields]] = {
    (Slot.NAME, STR): [Fields((Slot.NAME, Slot.STRING), 8)],
    (Slot.NAME, NUM): [Fields((Slot.NAME, Slot.NATURAL), 8)],
    (Slot.LEVEL, 0): [Fields((), 8)],
    (Slot.LEVEL, 1): [Fields((Slot.LEVEL,), 8)],
    (Slot.LEVEL, 2): [Fields((Slot.LEVEL, Slot.LEVEL), 8)],
    (Slot.LEVEL, 3): [Fields((Slot.LEVEL, Slot.LEVEL), 8)],
    (Slot.LEVEL, PARAMETER): [Fields((Slot.NAME,), 8)],
    (Slot.TERM, BOUND): [Fields((Slot.NATURAL,), 8)],
    (Slot.TERM, SORT): [Fields((Slot.LEVEL,), 8)],
    (Slot.TERM, CONST): [Fields((Slot.NAME, Slot.LEVELS), 8)],
    (Slot.TERM, APP): [Fields((T, T), 8)],
    (Slot.TERM, LAMBDA): [Fields((Slot.NAME, T, T), 9, BINDER)],
    (Slot.TERM, PI): [Fields((Slot.NAME, T, T), 9, BINDER)],
    (Slot.TERM, LET): [Fields((Slot.NAME, T, T, T), 9, FLAG)],
    (Slot.TERM, LITERAL): [Fields((Slot.LITERAL,), 8)],
    (Slot.TERM, NOTE): [Fields((Slot.NOTE, T), 8)],
    (Slot.TERM, PROJECTION): [Fields((Slot.NAME, Slot.NATURAL, T), 8)],
    (Slot.LITERAL, 0): [Fields((Slot.NATURAL,))],
    (Slot.LITERAL, 1): [Fields((Slot.STRING,))],
    (Slot.HINTS, 2): [Fields((), 4)],
    (Slot.RULE, 0): [Fields((Slot.NAME, S, T))],
    (Slot.VALUE, 0): [Fields((Slot.NAME, N, T))],
    (Slot.IMPORT, 0): [Fields((Slot.NAME,), 1, FLAG)],
    **{(each, 1): [Fields((of, each))] for each, of in LISTS.items()},
    **{
        (Slot.DECLARATION, tag): [Fields((kind,))]
        for tag, kind in enumerate((
            Slot.AXIOM, Slot.DEFINITION, Slot.THEOREM, Slot.OPAQUE, Slot.QUOTIENT, Slot.INDUCTIVE, Slot.CONSTRUCTOR,
            Slot.RECURSOR,
        ))
    },
    (Slot.AXIOM, 0): [Fields((Slot.VALUE,), 1, FLAG)],
    (Slot.DEFINITION, 0): [Fields((Slot.VALUE, T, Slot.HINTS, N), 1, SAFETY)],
    (Slot.THEOREM, 0): [Fields((Slot.VALUE, T, N))],
    (Slot.OPAQUE, 0): [Fields((Slot.VALUE, T, N), 1, FLAG)],
    (Slot.QUOTIENT, 0): [Fields((Slot.VALUE,), 1, QUOTIENT)],
    # Older versions do not store the number of nested types.
    (Slot.INDUCTIVE, 0): [Fields((Slot.VALUE, S, S, N, N, *more), 3, FLAG * 3) for more in ((S,), ())],
    (Slot.CONSTRUCTOR, 0): [Fields((Slot.VALUE, Slot.NAME, S, S, S), 1, FLAG)],
    (Slot.RECURSOR, 0): [Fields((Slot.VALUE, N, S, S, S, S, Slot.RULES), 2, FLAG * 2)],
}  # fmt: skip
"""Layouts by required kind and object tag. Free and meta variables are not allowed in a declaration."""
BOXED = {
    Slot.NAME: (NOTHING,),
    Slot.LEVEL: (NOTHING,),
    Slot.HINTS: (NOTHING, NOTHING + 2),
    **dict.fromkeys(LISTS, (NOTHING,)),
}
"""Permitted boxed values by kind."""
WITHOUT_TERMS = (N, S, Slot.NAME, Slot.STRING, Slot.LEVEL, Slot.LEVELS, Slot.LITERAL, Slot.HINTS, Slot.NOTE)
"""Kinds that contain no terms."""
ALIGNED = 1 << 16
"""Alignment of the base addresses that Lean writes. Any other only serves to have the file relocated."""


class OleanObjects:
    """Objects of one compiled Lean file, by their byte offsets. Raises OleanError."""

    def __init__(self, olean: Olean) -> None:
        self.olean = olean
        self._data = olean.data
        self.words: Sequence[int] = memoryview(self._data + bytes(-len(self._data) % 8)).cast("Q")
        self.base = olean.base
        self._starts = self._scanned(HEADERS[self._data[5]])
        self._check_whole()
        self.seen: dict[Slot, set[int]] = {kind: set() for kind in Slot}
        self._follow()

    def tag(self, at: int) -> int:
        return self.words[at >> 3] >> 56

    def fields(self, at: int) -> Sequence[int]:
        """Returns the pointers and boxed values of an object."""
        header = self.words[at >> 3]
        return self.words[(at >> 3) + 1 : (at >> 3) + 1 + (header >> 48 & 0xFF)]

    def field(self, at: int, index: int) -> int:
        """Returns the offset of the object that a field points to."""
        return self.words[(at >> 3) + 1 + index] - self.base

    def behind(self, at: int) -> int:
        """Returns the first eight bytes behind an object's fields."""
        header = self.words[at >> 3]
        return self.words[(at >> 3) + 1 + (header >> 48 & 0xFF)]

    def listed(self, pointer: int) -> list[int]:
        """Returns the pointers in a linked list of a compiled Lean file."""
        found = []
        while pointer != NOTHING:
            first, pointer = self.fields(pointer - self.base)
            found.append(first)
        return found

    def text(self, pointer: int) -> bytes:
        at = pointer - self.base
        size = self.words[(at >> 3) + 1]
        return self._data[at + 32 : at + 31 + size]

    def number(self, pointer: int) -> int:
        if pointer & 1:
            return pointer >> 1
        at = pointer - self.base
        limbs = self.words[(at >> 3) + 1] >> 32
        return int.from_bytes(self._data[at + 24 : at + 24 + 8 * limbs], "little")

    def terms(self, found: Iterable[tuple[int, Slot]]) -> Iterator[int]:
        """Yields the offset of every term that these objects contain, once."""
        waiting, seen = list(found), set()
        while waiting:
            at, kind = waiting.pop()
            if (at, kind) in seen:
                continue
            seen.add((at, kind))
            if kind is Slot.TERM:
                yield at
            for one, each in zip(self.fields(at), self._kinds(at, kind), strict=True):
                if not one & 1 and each not in WITHOUT_TERMS:
                    waiting.append((one - self.base, each))

    def _check_whole(self) -> None:
        whole = self.olean.root
        if self.base % ALIGNED or whole not in self._starts:
            raise AlteredError("a root that is not at an object")
        if self.words[whole >> 3] >> 32 & 0xFFFF > 8 + 8 * FIELDS_OF_MODULE and self.behind(whole) & 0xFF:
            raise AlteredError("a file that claims to be one of several")
        lists = [self.field(whole, index) for index in range(FIELDS_OF_MODULE)]
        if not self._starts.issuperset(lists):
            raise AlteredError("a list that is not at an object")
        if self.olean.listed(ENTRIES) and lists.count(lists[ENTRIES]) > 1:
            raise AlteredError("entries shared with another list")

    def _scanned(self, at: int) -> set[int]:
        """Returns the offsets of all consecutive objects, including unreachable ones: Lean relocates a file in the same
        way, pointer by pointer."""
        words, end, starts = self.words, len(self._data), set()
        if self.olean.form[1]:
            at += 8  # newer versions begin with the root pointer, older ones end with it
        else:
            end -= 8
        while at < end:
            header = words[at >> 3]
            tag, length = header >> 56, words[(at >> 3) + 1] if at + 16 <= end else 0
            if tag <= CONSTRUCTORS:
                size = header >> 32 & 0xFFFF
            elif tag == ARRAY:
                size = 24 + 8 * length
            elif tag == STRING:
                size = 32 + length
            elif tag == SCALARS:
                size = 24 + length * (header >> 48 & 0xFF)
            elif tag == BIG:
                size = 24 + 8 * (length >> 32)
            elif tag in (THUNK, TASK):
                size = 24
            else:
                raise OleanError("an object of an unknown kind")
            if at + size > end:
                raise AlteredError("an object that extends beyond the file")
            if tag <= CONSTRUCTORS and size < 8 + 8 * (header >> 48 & 0xFF):
                raise AlteredError("an object that is too short")
            if header & 0xFFFF_FFFF:
                raise AlteredError("an object with a reference count")
            if tag in (ARRAY, STRING, SCALARS) and words[(at >> 3) + 2] != length:
                raise AlteredError("an object with unused capacity")
            starts.add(at)
            at += size + 7 & ~7
        return starts

    def _follow(self) -> None:
        """Visits every object that the declarations of a compiled Lean file contain, and records its kind. Raises
        AlteredError for a wrong pointer."""
        waiting: list[tuple[int, int, Slot]] = []
        for index, kind in (
            (NAMES, Slot.NAME), (CONSTANTS, Slot.DECLARATION), (IMPORTS, Slot.IMPORT), (EXTRA_NAMES, Slot.NAME)
        ):  # fmt: skip
            waiting += [(self.words[at >> 3], at, kind) for at in self.olean.listed(index)]
        base, seen = self.base, self.seen
        while waiting:
            pointer, parent, kind = waiting.pop()
            if kind is Slot.NOTE:
                continue
            if pointer & 1:
                if kind is not Slot.NATURAL and pointer not in BOXED.get(kind, ()):
                    raise AlteredError(f"no {kind.name.lower()} where one belongs")
                continue
            at = pointer - base
            if at in seen[kind]:
                if at >= parent:
                    raise AlteredError("an object before its parts")
                continue
            if at not in self._starts or at >= parent:
                raise AlteredError("a pointer to no object, or to a later one")
            seen[kind].add(at)
            kinds = self._kinds(at, kind)
            waiting += [(one, at, each) for one, each in zip(self.fields(at), kinds, strict=True)]

    def _kinds(self, at: int, kind: Slot) -> Sequence[Slot]:
        """Returns the kinds of objects that an object's fields require. Raises AlteredError if its kind is wrong."""
        header = self.words[at >> 3]
        tag, fields, size = header >> 56, header >> 48 & 0xFF, header >> 32 & 0xFFFF
        if kind is Slot.STRING:
            self._check_text(at, tag)
            return ()
        if kind is Slot.NATURAL:
            self._check_number(at, tag)
            return ()
        for known in FIELDS.get((kind, tag), ()):
            end = 8 + 8 * fields + known.scalars
            if fields == len(known.slots) and size >= end:
                flags = self._data[at + end - len(known.most) : at + end]
                if any(flag > most for flag, most in zip(flags, known.most, strict=True)):
                    raise AlteredError(f"a {kind.name.lower()} with an invalid flag")
                return known.slots
        raise AlteredError(f"no {kind.name.lower()} where one belongs")

    def _check_text(self, at: int, tag: int) -> None:
        size, room, characters = self.words[(at >> 3) + 1 : (at >> 3) + 4]
        if tag != STRING or not 1 <= size <= room or self._data[at + 31 + size]:
            raise AlteredError("an invalid text")
        try:
            counted = len(self._data[at + 32 : at + 31 + size].decode())
        except UnicodeDecodeError:
            raise AlteredError("a text that is not Unicode") from None
        if counted != characters:
            raise AlteredError("a text with a wrong length")

    def _check_number(self, at: int, tag: int) -> None:
        """Raises AlteredError unless a number is canonical: small ones are boxed, large ones have no leading zeros."""
        length = self.words[(at >> 3) + 1]
        limbs, room = length >> 32, length & 0xFFFF_FFFF
        if (
            tag != BIG or not 1 <= limbs <= room or self.words[(at >> 3) + 2] != self.base + at + 24
            or not self.words[(at >> 3) + 2 + limbs] or self.number(at + self.base) <= LARGEST_SMALL
        ):  # fmt: skip
            raise AlteredError("an invalid number")
