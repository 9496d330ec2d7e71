"""Outer structure of a compiled Lean file: reads the declared names and removes the entries.

Besides declarations a compiled file has entries: notations, macros, instances, attributes, initialisers, and the data
that `#print axioms` trusts. Importing the file activates them. A file whose list of entries was emptied brings only
declarations, which the kernel checks by content: none of its code runs in an importer, and none of its syntax applies.

Invariants: nothing outside the given bytes is read; anything unexpected is OleanError. Source: src/runtime/compact.cpp
and src/Lean/Environment.lean (ModuleData) of Lean 4; formats 1 and 2.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

MARK = b"olean"
HEADERS = {1: 56, 2: 88}
"""Header size in bytes by format; its last eight bytes are the base address of pointers."""
CONSTRUCTOR_OF_MODULE, FIELDS_OF_MODULE = 0, 5
IMPORTS, NAMES, CONSTANTS, EXTRA_NAMES, ENTRIES = 0, 1, 2, 3, 4
AXIOM, QUOTIENT = 0, 4
"""Kinds of declarations without a proof."""
ARRAY, STRING, STR, NUM = 246, 249, 1, 2
MOST_PARTS = 200_000
"""Maximum number of parts of a name: more than a submission has room for."""


class OleanError(Exception):
    """File that is not a compiled Lean file in a known form."""


class Olean:
    """One compiled Lean file. The constructor and every method raise OleanError for unreadable data."""

    def __init__(self, data: bytes) -> None:
        if data[:5] != MARK or len(data) < 64 or data[5] not in HEADERS:
            raise OleanError("not a compiled Lean file of a known form")
        self._data = bytearray(data)
        header = HEADERS[data[5]]
        self._base = self._word(header - 8)
        self._form = self._data[5], True
        self._root = self._find_root(header)

    @property
    def data(self) -> bytes:
        return bytes(self._data)

    @property
    def base(self) -> int:
        """Address of the file's start, from which pointers count."""
        return self._base

    @property
    def root(self) -> int:
        return self._root

    @property
    def form(self) -> tuple[int, bool]:
        """Format, and True if the root pointer comes first. The same for all files of one Lean."""
        return self._form

    def listed(self, index: int) -> list[int]:
        """Returns the offsets of the pointers in one of the root's arrays."""
        return self._elements(self._field(index))

    def imports(self) -> list[str]:
        """Returns the names of the modules that a compiled Lean file imports."""
        known: dict[int, str] = {}
        found = [self._at(self._word(at)) for at in self.listed(IMPORTS)]
        return [self._name(self._word(at + 8), known) for at in found]

    def names(self) -> list[str]:
        """Returns the full names that a compiled Lean file declares, without quotation marks."""
        known: dict[int, str] = {}
        return [self._name(self._word(at), known) for at in self.listed(NAMES)]

    def axioms(self) -> list[str]:
        """Returns the names that a compiled Lean file declares without a proof."""
        found = zip(self.names(), self.listed(CONSTANTS), strict=False)
        return [name for name, at in found if self._object(self._at(self._word(at)))[2] in (AXIOM, QUOTIENT)]

    def without_entries(self, notes: Iterable[int] = ()) -> bytes:
        """Returns a compiled Lean file with its declarations only. `notes`: offsets of terms that lose theirs."""
        changed = bytearray(self._data)
        struct.pack_into("<Q", changed, self._field(ENTRIES) + 8, 0)
        for at in notes:
            struct.pack_into("<Q", changed, at + 8, 1)  # an empty list
        return bytes(changed)

    def _find_root(self, header: int) -> int:
        # Older versions put the root pointer last, newer ones first.
        for at in (header, len(self._data) - 8):
            self._form = self._data[5], at == header
            try:
                root = self._at(self._word(at))
                _, fields, tag = self._object(root)
                if tag == CONSTRUCTOR_OF_MODULE and fields == FIELDS_OF_MODULE:
                    for index in range(FIELDS_OF_MODULE):
                        self._elements(self._at(self._word(root + 8 + 8 * index)))
                    return root
            except OleanError:
                continue
        raise OleanError("a compiled Lean file of an unknown form")

    def _field(self, index: int) -> int:
        return self._at(self._word(self._root + 8 + 8 * index))

    def _elements(self, at: int) -> list[int]:
        """Returns the offsets of an array's pointers."""
        _, _, tag = self._object(at)
        size = self._word(at + 8)
        if tag != ARRAY or size > (len(self._data) - at - 24) // 8:
            raise OleanError("an invalid list")
        return [at + 24 + 8 * index for index in range(size)]

    def _name(self, pointer: int, known: dict[int, str]) -> str:
        parts: list[str] = []
        wanted, before = pointer, ""
        while not pointer & 1:
            if pointer in known:
                before = known[pointer]
                break
            if len(parts) >= MOST_PARTS:
                raise OleanError("a name with too many parts")
            at = self._at(pointer)
            _, _, tag = self._object(at)
            last = self._word(at + 16)
            if tag == STR:
                parts.append(self._string(self._at(last)))
            elif tag == NUM:
                parts.append(str(last >> 1))
            else:
                raise OleanError("an invalid name")
            pointer = self._word(at + 8)
        known[wanted] = ".".join([*([before] if before else []), *reversed(parts)])
        return known[wanted]

    def _string(self, at: int) -> str:
        _, _, tag = self._object(at)
        size = self._word(at + 8)
        if tag != STRING or size < 1 or at + 32 + size > len(self._data):
            raise OleanError("an invalid text")
        return self._data[at + 32 : at + 32 + size - 1].decode("utf-8", "replace")

    def _object(self, at: int) -> tuple[int, int, int]:
        """Returns size, number of fields and tag of an object in a compiled Lean file."""
        if at + 8 > len(self._data):
            raise OleanError("a pointer outside the file")
        _, size, fields, tag = struct.unpack_from("<iHBB", self._data, at)
        return size, fields, tag

    def _at(self, pointer: int) -> int:
        at = pointer - self._base
        if pointer & 7 or not 0 <= at <= len(self._data) - 8:
            raise OleanError("a pointer outside the file")
        return at

    def _word(self, at: int) -> int:
        if not 0 <= at <= len(self._data) - 8:
            raise OleanError("a pointer outside the file")
        return int(struct.unpack_from("<Q", self._data, at)[0])
