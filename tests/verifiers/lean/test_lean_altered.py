"""Compiled files that somebody made by hand: each lie in them is found before Lean sees the file."""

from __future__ import annotations

import base64
import json
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from lean_kit import FALSE, Local, word
from test_lean_olean import compiled

from verifiers.contract.verdict import Outcome
from verifiers.lean.declarations import RECURSOR, examine
from verifiers.lean.objects import BIG, BOUND, CONST, LITERAL, PI, SCALARS, AlteredError, OleanObjects, Slot
from verifiers.lean.olean import ARRAY, CONSTANTS, ENTRIES, NAMES, Olean, OleanError
from verifiers.lean.toolchain import Toolchain
from verifiers.lean.verifier import LeanVerifier

SOURCE = """
universe u
inductive List' (α : Type) where
  | nil
  | cons (first : α) (rest : List' α)
inductive Same (a : Nat) : Nat → Prop where
  | refl : Same a a
structure Held (α : Sort u) where
  held : α
def large : Nat := 18446744073709551617
def said : String := "añ✓𝒳"
def next (n : Nat) : Nat := let m := n; m + 1
theorem one (p : Prop) (h : p) : p := h
theorem two (p : Prop) (h : p) : p := h
opaque hidden : Nat
theorem follows : next 1 = 2 := rfl
mutual
inductive Even : Type where
  | zero
  | next (odd : Odd)
inductive Odd : Type where
  | next (even : Even)
end
"""
PROOF = """
theorem through (f : 2 + 2 = 5 → 2 + 2 = 5) (x : 2 + 2 = 5) : 2 + 2 = 5 := f x
theorem dummy : 2 + 2 = 5 := sorry
theorem target : 2 + 2 = 5 := through (fun h => h) dummy
"""
FRESH = """
import ctypes, json, sys
lean = ctypes.CDLL(sys.argv[1], mode=ctypes.RTLD_GLOBAL)
lean.lean_initialize()
for name in ("lean_mk_string_from_bytes", "lean_name_mk_string", "l_Lean_Name_num___override", "lean_expr_mk_fvar"):
    getattr(lean, name).restype = ctypes.c_void_p
def data(at, place):
    return ctypes.c_uint64.from_address(at + 8 * place).value
text = ctypes.c_void_p(lean.lean_mk_string_from_bytes(b"_kernel_fresh", ctypes.c_size_t(13)))
name = lean.lean_name_mk_string(ctypes.c_void_p(1), text)
first = lean.l_Lean_Name_num___override(ctypes.c_void_p(name), ctypes.c_void_p(1))
hashes = data(name, 3), data(first, 3)
print(json.dumps([*hashes, data(lean.lean_expr_mk_fvar(ctypes.c_void_p(first)), 2)]))
"""
"""What Lean writes beside the first local variable of its kernel: of both parts of its name, and of itself."""


@pytest.fixture(scope="module")
def honest(local: Local) -> bytes:
    return compiled(local, SOURCE)


@pytest.fixture(scope="module")
def fresh(toolchain: Toolchain) -> list[int]:
    ran = subprocess.run([sys.executable, "-c", FRESH, str(toolchain.library)], capture_output=True, check=True)
    return [int(number) for number in json.loads(ran.stdout)]


class Editor:
    """A compiled file that things are changed in."""

    def __init__(self, data: bytes) -> None:
        self.data = bytearray(data)
        self.objects = OleanObjects(Olean(data))

    def put(self, at: int, value: int) -> None:
        self.data[at : at + 8] = word(value)

    def named(self, name: str) -> int:
        """Where it is listed."""
        olean = self.objects.olean
        return olean.listed(NAMES)[olean.names().index(name)]

    def declared(self, name: str) -> int:
        """Where its declaration is listed."""
        olean = self.objects.olean
        return olean.listed(CONSTANTS)[olean.names().index(name)]

    def value(self, name: str) -> int:
        """What its declaration holds, of whatever kind it is."""
        return self.objects.field(self.objects.words[self.declared(name) >> 3] - self.objects.base, 0)

    def first(self, kind: Slot, tag: int) -> int:
        return min(at for at in self.objects.seen[kind] if self.objects.tag(at) == tag)

    def behind(self, at: int) -> int:
        """Where what is behind an object's fields lies."""
        return at + 8 + 8 * len(self.objects.fields(at))

    def add(self, tag: int, fields: int, size: int, *values: int, rest: bytes = b"") -> int:
        """A pointer to a new object."""
        at = len(self.data)
        head = struct.pack("<iHBB", 0, size, fields, tag)
        self.data += head + b"".join(map(word, values)) + rest + bytes(-len(rest) % 8)
        return at + self.objects.base


def local_variable_that_is_gone(data: bytes, fresh: list[int]) -> bytes:
    """The proof of `target` with the kernel's own variable `h`, of another term of it, in the place of `dummy`, and
    nothing said of a free variable in it. The kernel remembers what type it had."""
    editor = Editor(data)
    objects = editor.objects
    argument = objects.field(objects.field(editor.value("target"), 1), 1)
    assert objects.tag(argument) == CONST
    text = b"_kernel_fresh\0"
    said = editor.add(249, 0, 1, len(text), len(text), len(text) - 1, rest=text)
    name = editor.add(2, 2, 32, editor.add(1, 2, 32, 1, said, fresh[0]), 1, fresh[1])
    editor.data[argument : argument + 8] = struct.pack("<iHBB", 0, 32, 1, 1)
    editor.put(argument + 8, name)
    editor.put(argument + 16, fresh[2])
    return bytes(editor.data)


@pytest.mark.parametrize("flags", [(), ("--cold",)])
def test_a_proof_with_a_local_variable_that_is_gone_is_no_proof(
    toolchain: Toolchain, tmp_path: Path, fresh: list[int], flags: tuple[str, ...]
) -> None:
    class Taken(Local):
        """What a box is like where a submission has taken over the compilation."""

        def ask(self, message: dict[str, Any], seconds: float = 120) -> dict[str, Any]:
            answer = super().ask(message, seconds)
            if message.get("module") == "AssaySubmission":
                forged = local_variable_that_is_gone(base64.b64decode(answer["file"]), fresh)
                answer["file"] = base64.b64encode(forged).decode()
            return answer

    lean = LeanVerifier(lambda: Taken(toolchain, tmp_path, flags=flags), toolchain, memory_mib=2560, most=1)
    try:
        found = lean.verify(FALSE, PROOF)
    finally:
        lean.close()
    assert found.outcome is Outcome.HACK_SUSPECTED, found
    assert "not written by Lean" in found.reason


def lies(data: bytes) -> Iterator[tuple[str, bytes]]:
    """Each is one change to a file that is honest otherwise."""

    def begun() -> Editor:
        return Editor(data)

    editor = begun()
    term = editor.behind(editor.first(Slot.TERM, BOUND))
    editor.put(term, editor.objects.words[term >> 3] & (1 << 44) - 1)
    yield "a term with wrong data", bytes(editor.data)

    editor = begun()
    at = editor.behind(editor.objects.field(editor.objects.field(editor.value("Held"), 0), 2))
    editor.put(at, editor.objects.words[at >> 3] ^ 1 << 43)
    yield "a term with wrong data", bytes(editor.data)

    editor = begun()
    at = editor.behind(editor.first(Slot.LEVEL, 4))
    editor.put(at, editor.objects.words[at >> 3] ^ 1 << 33)
    yield "a universe level with wrong data", bytes(editor.data)

    editor = begun()
    one, two = editor.named("one"), editor.named("two")
    editor.put(one, editor.objects.words[two >> 3])
    editor.put(two, editor.objects.words[one >> 3])
    yield "under a wrong name", bytes(editor.data)

    editor = begun()
    editor.put(one, editor.objects.words[two >> 3])
    editor.put(editor.declared("one"), editor.objects.words[editor.declared("two") >> 3])
    yield "two declarations of one name", bytes(editor.data)

    editor = begun()
    olean = editor.objects.olean
    fewer = [editor.objects.words[at >> 3] for at in olean.listed(NAMES)][:-1]
    editor.put(olean.root + 8 + 8 * NAMES, editor.add(ARRAY, 0, 1, len(fewer), len(fewer), *fewer))
    yield "different numbers of names", bytes(editor.data)

    editor = begun()
    editor.put(editor.value("Same") + 8 + 8 * 2, 1)  # no index
    yield "other parameters or indices than its recursor", bytes(editor.data)

    editor = begun()
    editor.put(editor.value("List'") + 8 + 8, 1)  # no parameter
    yield "other parameters or indices than its recursor", bytes(editor.data)

    editor = begun()
    editor.put(editor.value("Held") + 8 + 8 * 3, editor.objects.fields(editor.value("Same"))[3])
    yield "later one|than its recursor", bytes(editor.data)

    for name, place in {"Held": 1, "Held.mk": 0, "Held.rec": 1}.items():
        editor = begun()
        editor.data[editor.behind(editor.value(name)) + place] = 1
        yield "skipped by a replay", bytes(editor.data)

    editor = begun()
    editor.data[editor.behind(editor.value("List'"))] = 0
    yield "a recursive type that claims not to be recursive", bytes(editor.data)

    editor = begun()
    number = min(editor.objects.seen[Slot.NATURAL])
    editor.put(number + 32, 0)  # the number 1, as an object
    yield "an invalid number", bytes(editor.data)

    editor = begun()
    literal = next(at for at in editor.objects.seen[Slot.LITERAL] if editor.objects.tag(at) == 1)
    editor.put(editor.objects.field(literal, 0) + 24, 7)
    yield "a text with a wrong length", bytes(editor.data)

    editor = begun()
    editor.put(editor.first(Slot.TERM, LITERAL) + 8, min(editor.objects.seen[Slot.NAME]) + editor.objects.base)
    yield "no literal where one belongs", bytes(editor.data)

    editor = begun()
    at = editor.value("one")
    editor.data[at] = 1
    yield "a reference count", bytes(editor.data)

    editor = begun()
    at = editor.first(Slot.TERM, CONST)
    editor.put(at + 8, editor.objects.fields(at)[0] + 8)
    yield "a pointer to no object", bytes(editor.data)


def lies_of_the_whole(data: bytes) -> Iterator[tuple[str, bytes]]:
    """And of what nothing leads to."""

    def begun() -> tuple[Editor, int]:
        editor = Editor(data)
        return editor, editor.objects.olean.root

    editor, _ = begun()
    editor.add(0, 3, 8)  # what Lean would change of it when it moves the file is another object
    editor.add(0, 0, 32, 2, 4, 6)
    yield "too short", bytes(editor.data)

    editor, _ = begun()
    editor.data += struct.pack("<iHBB", 1, 16, 1, 0) + word(1)
    yield "a reference count", bytes(editor.data)

    editor, root = begun()
    editor.data[root] = 1
    yield "a reference count", bytes(editor.data)

    editor, root = begun()
    inside = editor.add(SCALARS, 1, 1, 32, 32, ARRAY << 56, 1, 1, 1) + 24
    editor.put(root + 8 + 8 * ENTRIES, inside)  # its length is a number of something else, and would be 0
    yield "a list that is not at an object", bytes(editor.data)

    editor, root = begun()
    editor.put(root + 8 + 8 * ENTRIES, editor.objects.fields(root)[NAMES])
    yield "entries shared with", bytes(editor.data)

    editor, root = begun()
    editor.data[editor.behind(root)] = 1
    yield "one of several", bytes(editor.data)

    yield "not at an object", moved(data, 8)


def lies_in_bytes(data: bytes) -> Iterator[tuple[str, bytes]]:
    """A flag that is neither yes nor no, and a type that its block knows nothing of."""
    for name, value in {"Held": 2, "Held.mk": 2, "Held.rec": 3, "next": 3, "hidden": 2}.items():
        editor = Editor(data)
        editor.data[editor.behind(editor.value(name))] = value
        yield "with an invalid flag", bytes(editor.data)

    editor = Editor(data)
    editor.data[editor.behind(editor.first(Slot.TERM, PI)) + 8] = 4
    yield "with an invalid flag", bytes(editor.data)

    editor = Editor(data)
    editor.data[editor.behind(editor.value("next"))] = 2  # partial
    yield "uses one skipped by a replay", bytes(editor.data)

    editor = Editor(data)
    parameters = editor.objects.fields(editor.objects.field(editor.value("Held.rec"), 0))[1]
    for name in ("Odd", "Odd.rec"):
        editor.put(editor.objects.field(editor.value(name), 0) + 16, parameters)
    yield "contradict each other|later one", bytes(editor.data)


def moved(data: bytes, by: int) -> bytes:
    """The same for another address."""
    editor = Editor(data)
    objects = editor.objects
    places = [80, 88]
    for at in objects._starts:
        if objects.tag(at) == ARRAY:
            places += [at + 24 + 8 * index for index in range(objects.words[(at >> 3) + 1])]
        elif objects.tag(at) < ARRAY:
            places += [at + 8 + 8 * index for index in range(len(objects.fields(at)))]
        elif objects.tag(at) == BIG:
            places.append(at + 16)
    for place in places:
        if not (value := objects.words[place >> 3]) & 1:
            editor.put(place, value + by)
    return bytes(editor.data)


def test_an_honest_file_is_as_lean_writes_it(honest: bytes) -> None:
    examine(Olean(honest), ["Init"])
    objects = OleanObjects(Olean(honest))
    kinds = {objects.tag(at) for at in objects.seen[Slot.DECLARATION]}
    assert kinds >= {1, 2, 3, 5, 6, RECURSOR}


def test_each_lie_is_found(honest: bytes) -> None:
    for says, data in (*lies(honest), *lies_of_the_whole(honest), *lies_in_bytes(honest)):
        with pytest.raises(AlteredError, match=says):
            examine(Olean(data), ["Init"])


def test_a_file_may_import_only_what_its_source_does(honest: bytes) -> None:
    assert set(Olean(honest).imports()) == {"Init"}
    with pytest.raises(AlteredError, match="it imports Init"):
        examine(Olean(honest), ["Nothing"])


def test_a_file_with_a_second_whole_is_none_of_this_lean(honest: bytes) -> None:
    """Where Lean reads the first pointer, one that we would pass over must not lead it to what nobody looked at."""
    olean = Olean(honest)
    assert olean.form == (2, True)
    last = honest[:88] + word(olean.base + 88) + honest[96:] + word(olean.root + olean.base)
    assert Olean(last).form == (2, False)
    with pytest.raises(AlteredError, match="its form differs"):
        examine(Olean(last), ["Init"], olean.form)


def test_a_file_whose_pointers_count_from_between_two_words_is_refused(honest: bytes) -> None:
    olean = Olean(honest)
    shifted = honest[:80] + word(olean.base + 4) + honest[88:]
    with pytest.raises(OleanError):
        examine(Olean(shifted), ["Init"], olean.form)
