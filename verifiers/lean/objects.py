"""The objects of a compiled Lean file: where each begins, and that each is of the kind that its place asks for.

Lean takes a compiled file as it lies and never asks an object what it is, so that a file made by hand could have it
take one thing for another, or read outside of the file.

What always holds: only the standard library; nothing outside the bytes is looked at; linear in the file; no object is
reached from itself. A form that is not known is OleanError; what no Lean writes is AlteredError.
Source: src/runtime/compact.cpp, src/Lean/Expr.lean, src/Lean/Level.lean, src/Lean/Declaration.lean; Lean 4.35.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, auto
from typing import NamedTuple

from verifiers.lean.olean import (
    ARRAY,
    CONSTANTS,
    EXTRA_NAMES,
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
"""The boxed value 0: the empty list, the anonymous name, the universe level zero."""
CONSTRUCTORS = 244
"""The highest tag of an object that a constructor made."""
SCALARS, BIG, THUNK, TASK = 248, 250, 251, 252
LARGEST_SMALL = (1 << 63) - 1
"""Numbers up to it are never objects."""
BOUND, SORT, CONST, APP, LAMBDA, PI, LET, LITERAL, NOTE, PROJECTION = 0, 3, 4, 5, 6, 7, 8, 9, 10, 11
PARAMETER = 4


class AlteredError(OleanError):
    """No Lean writes such a file."""


class Kind(Enum):
    """What a place asks for."""

    NAME = auto()
    STRING = auto()
    NATURAL = auto()
    LEVEL = auto()
    TERM = auto()
    LITERAL = auto()
    HINTS = auto()
    RULE = auto()
    VALUE = auto()
    """What every declaration has: its name, universe parameters and type."""
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
    ANYTHING = auto()
    """What neither the kernel nor a check looks into: notes of the elaborator's beside a term."""


class Shape(NamedTuple):
    fields: tuple[Kind, ...]
    scalars: int = 0
    """Bytes behind them that the place needs."""


N, S, T = Kind.NAMES, Kind.NATURAL, Kind.TERM
LISTS = {Kind.NAMES: Kind.NAME, Kind.LEVELS: Kind.LEVEL, Kind.RULES: Kind.RULE}
SHAPES: dict[tuple[Kind, int], Sequence[Shape]] = {
    (Kind.NAME, STR): [Shape((Kind.NAME, Kind.STRING), 8)],
    (Kind.NAME, NUM): [Shape((Kind.NAME, Kind.NATURAL), 8)],
    (Kind.LEVEL, 0): [Shape((), 8)],
    (Kind.LEVEL, 1): [Shape((Kind.LEVEL,), 8)],
    (Kind.LEVEL, 2): [Shape((Kind.LEVEL, Kind.LEVEL), 8)],
    (Kind.LEVEL, 3): [Shape((Kind.LEVEL, Kind.LEVEL), 8)],
    (Kind.LEVEL, PARAMETER): [Shape((Kind.NAME,), 8)],
    (Kind.TERM, BOUND): [Shape((Kind.NATURAL,), 8)],
    (Kind.TERM, SORT): [Shape((Kind.LEVEL,), 8)],
    (Kind.TERM, CONST): [Shape((Kind.NAME, Kind.LEVELS), 8)],
    (Kind.TERM, APP): [Shape((T, T), 8)],
    (Kind.TERM, LAMBDA): [Shape((Kind.NAME, T, T), 9)],
    (Kind.TERM, PI): [Shape((Kind.NAME, T, T), 9)],
    (Kind.TERM, LET): [Shape((Kind.NAME, T, T, T), 9)],
    (Kind.TERM, LITERAL): [Shape((Kind.LITERAL,), 8)],
    (Kind.TERM, NOTE): [Shape((Kind.ANYTHING, T), 8)],
    (Kind.TERM, PROJECTION): [Shape((Kind.NAME, Kind.NATURAL, T), 8)],
    (Kind.LITERAL, 0): [Shape((Kind.NATURAL,))],
    (Kind.LITERAL, 1): [Shape((Kind.STRING,))],
    (Kind.HINTS, 2): [Shape((), 4)],
    (Kind.RULE, 0): [Shape((Kind.NAME, S, T))],
    (Kind.VALUE, 0): [Shape((Kind.NAME, N, T))],
    (Kind.IMPORT, 0): [Shape((Kind.NAME,))],
    **{(each, 1): [Shape((of, each))] for each, of in LISTS.items()},
    **{
        (Kind.DECLARATION, tag): [Shape((kind,))]
        for tag, kind in enumerate((
            Kind.AXIOM, Kind.DEFINITION, Kind.THEOREM, Kind.OPAQUE, Kind.QUOTIENT, Kind.INDUCTIVE, Kind.CONSTRUCTOR,
            Kind.RECURSOR,
        ))
    },
    (Kind.AXIOM, 0): [Shape((Kind.VALUE,), 1)],
    (Kind.DEFINITION, 0): [Shape((Kind.VALUE, T, Kind.HINTS, N), 1)],
    (Kind.THEOREM, 0): [Shape((Kind.VALUE, T, N))],
    (Kind.OPAQUE, 0): [Shape((Kind.VALUE, T, N), 1)],
    (Kind.QUOTIENT, 0): [Shape((Kind.VALUE,), 1)],
    # Older versions do not say how many nested types there are.
    (Kind.INDUCTIVE, 0): [Shape((Kind.VALUE, S, S, N, N, S), 3), Shape((Kind.VALUE, S, S, N, N), 3)],
    (Kind.CONSTRUCTOR, 0): [Shape((Kind.VALUE, Kind.NAME, S, S, S), 1)],
    (Kind.RECURSOR, 0): [Shape((Kind.VALUE, N, S, S, S, S, Kind.RULES), 2)],
}  # fmt: skip
"""By what a place asks for and the object's tag. A free or an open variable has no place in a declaration."""
BOXED = {
    Kind.NAME: (NOTHING,),
    Kind.LEVEL: (NOTHING,),
    Kind.HINTS: (NOTHING, NOTHING + 2),
    **dict.fromkeys(LISTS, (NOTHING,)),
}
"""Values that are no objects."""
UNBOUNDED = (Kind.NATURAL, Kind.ANYTHING)
"""Kinds of which any value may be none."""


class OleanObjects:
    """One file's, by the bytes between its beginning and theirs. Raises OleanError."""

    def __init__(self, olean: Olean) -> None:
        self.olean = olean
        self._data = olean.data
        self.words: Sequence[int] = memoryview(self._data + bytes(-len(self._data) % 8)).cast("Q")
        self.base = olean.base
        self._starts = self._scanned(HEADERS[self._data[5]])
        self.seen: dict[Kind, set[int]] = {kind: set() for kind in Kind}
        self._follow()

    def tag(self, at: int) -> int:
        return self.words[at >> 3] >> 56

    def fields(self, at: int) -> Sequence[int]:
        """Its pointers, and values that are none."""
        header = self.words[at >> 3]
        return self.words[(at >> 3) + 1 : (at >> 3) + 1 + (header >> 48 & 0xFF)]

    def field(self, at: int, index: int) -> int:
        """Where the object lies that a field leads to."""
        return self.words[(at >> 3) + 1 + index] - self.base

    def behind(self, at: int) -> int:
        """The first eight bytes behind its fields."""
        header = self.words[at >> 3]
        return self.words[(at >> 3) + 1 + (header >> 48 & 0xFF)]

    def listed(self, pointer: int) -> list[int]:
        """The pointers in a list."""
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

    def _scanned(self, at: int) -> set[int]:
        """Where objects begin: they lie one after the other."""
        words, end, starts = self.words, len(self._data), set()
        root = self.olean.root + self.base
        if words[at >> 3] == root:
            at += 8  # newer versions begin with the pointer to the whole, older ones end with it
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
                raise OleanError("an object of a kind that is not known")
            if size < 8 or at + size > end:
                raise AlteredError("an object that does not end in the file")
            starts.add(at)
            at += size + 7 & ~7
        return starts

    def _follow(self) -> None:
        """Goes through all that the declarations are made of."""
        waiting: list[tuple[int, int, Kind]] = []
        for index, kind in (
            (NAMES, Kind.NAME), (CONSTANTS, Kind.DECLARATION), (IMPORTS, Kind.IMPORT), (EXTRA_NAMES, Kind.NAME)
        ):  # fmt: skip
            waiting += [(self.words[at >> 3], at, kind) for at in self.olean.listed(index)]
        base, seen = self.base, self.seen
        while waiting:
            pointer, parent, kind = waiting.pop()
            if pointer & 1:
                if kind not in UNBOUNDED and pointer not in BOXED.get(kind, ()):
                    raise AlteredError(f"no {kind.name.lower()} where one belongs")
                continue
            at = pointer - base
            if at in seen[kind]:
                if at >= parent:
                    raise AlteredError("an object before what it is made of")
                continue
            if at not in self._starts or at >= parent:
                raise AlteredError("a pointer that leads to no object, or to one that comes later")
            seen[kind].add(at)
            kinds = self._kinds(at, kind)
            waiting += [(one, at, each) for one, each in zip(self._parts(at), kinds, strict=True)]

    def _kinds(self, at: int, kind: Kind) -> Sequence[Kind]:
        """What its own places ask for. Raises AlteredError where it is not of that kind."""
        header = self.words[at >> 3]
        tag, fields, size = header >> 56, header >> 48 & 0xFF, header >> 32 & 0xFFFF
        if header & 0xFFFF_FFFF:
            raise AlteredError("an object that somebody owns")
        if kind is Kind.STRING:
            self._check_text(at, tag)
            return ()
        if kind is Kind.NATURAL:
            self._check_number(at, tag)
            return ()
        if kind is Kind.ANYTHING:
            if tag <= CONSTRUCTORS and size < 8 + 8 * fields:
                raise AlteredError("an object that is too short")
            return [kind] * len(self._parts(at))
        for shape in SHAPES.get((kind, tag), ()):
            if fields == len(shape.fields) and size >= 8 + 8 * fields + shape.scalars:
                return shape.fields
        raise AlteredError(f"no {kind.name.lower()} where one belongs")

    def _parts(self, at: int) -> Sequence[int]:
        tag = self.tag(at)
        if tag <= CONSTRUCTORS:
            return self.fields(at)
        if tag == ARRAY:
            return self.words[(at >> 3) + 3 : (at >> 3) + 3 + self.words[(at >> 3) + 1]]
        return self.words[(at >> 3) + 1 : (at >> 3) + 2] if tag == THUNK else ()

    def _check_text(self, at: int, tag: int) -> None:
        size, room, characters = self.words[(at >> 3) + 1 : (at >> 3) + 4]
        if tag != STRING or not 1 <= size <= room or self._data[at + 31 + size]:
            raise AlteredError("a text that is none")
        try:
            counted = len(self._data[at + 32 : at + 31 + size].decode())
        except UnicodeDecodeError:
            raise AlteredError("a text that is not Unicode") from None
        if counted != characters:
            raise AlteredError("a text of another length than it says")

    def _check_number(self, at: int, tag: int) -> None:
        """A number has one form: what is small is no object, and no large one begins with zeros."""
        length = self.words[(at >> 3) + 1]
        limbs, room = length >> 32, length & 0xFFFF_FFFF
        if (
            tag != BIG or not 1 <= limbs <= room or self.words[(at >> 3) + 2] != self.base + at + 24
            or not self.words[(at >> 3) + 2 + limbs] or self.number(at + self.base) <= LARGEST_SMALL
        ):  # fmt: skip
            raise AlteredError("a number that is none")
