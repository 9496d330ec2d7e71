"""Compiled files that the kernel's replay takes for one thing and an import for another. Each of them would prove
something false."""

from __future__ import annotations

import base64
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from lean_kit import FALSE, Local, word
from test_lean_altered import Editor
from test_lean_olean import compiled

from verifiers.contract.verdict import Ground, Outcome
from verifiers.lean.declarations import examine
from verifiers.lean.objects import NOTE, NOTHING, AlteredError, Slot
from verifiers.lean.olean import ARRAY, CONSTANTS, FIELDS_OF_MODULE, NAMES, Olean
from verifiers.lean.spec import LeanSpec
from verifiers.lean.toolchain import Toolchain
from verifiers.lean.verifier import LeanVerifier

BLOCK = """
mutual
inductive Whole : Prop where
  | mk : Whole
inductive Part : Prop
end
def Stand_in : Prop := True
theorem target : Part → False := fun h =>
  Part.rec (motive_1 := fun _ => True) (motive_2 := fun _ => False) True.intro h
"""
CONSTRUCTOR = """
inductive Three : Type where
  | one
  | two
  | more (rest : Three)
def stand_in : Three := Three.two
def Is (t : Three) : Prop := Three.rec (motive := fun _ => Prop) True (2 + 2 = 5) (fun _ _ => True) t
theorem target : Is Three.one := True.intro
"""
NESTED = """
inductive Many (α : Type) : Type where
  | none
  | more (first : α) (rest : Many α)
inductive Tree : Type where
  | leaf
  | node (trees : Many Tree)
  | last (tree : Tree)
def stand_in : Type := Nat
def Is (t : Tree) : Prop := Tree.rec (motive_1 := fun _ => Prop) (motive_2 := fun _ => Prop)
  True (fun _ p => p) (fun _ _ => True) (2 + 2 = 5) (fun _ _ _ _ => True) t
theorem target : True := True.intro
"""
NOTED = "def noted (n : @& Nat) : Nat := n\n"
HIGH = "def high : Type 2 := (α : Type) → PUnit.{3}\n"
AGAIN = """
theorem other (p : Prop) : p ↔ p := Iff.refl p
theorem mine (p : Prop) : p ↔ p := Iff.intro (fun h => h) (fun h => h)
"""
PARTIAL = 2


def whole(editor: Editor, names: list[int], infos: list[int]) -> bytes:
    """The file, with these lists of its declarations."""
    root = editor.objects.olean.root
    fields = list(editor.objects.fields(root))
    for index, listed in ((NAMES, names), (CONSTANTS, infos)):
        fields[index] = editor.add(ARRAY, 0, 1, len(listed), len(listed), *listed)
    editor.data[88:96] = word(editor.add(0, FIELDS_OF_MODULE, 56, *fields, 0))
    return bytes(editor.data)


def in_the_place_of(data: bytes, name: str, other: str, *, safety: int | None = None) -> bytes:
    """The definition `other` in the place of what is declared as `name`."""
    editor = Editor(data)
    objects, olean = editor.objects, editor.objects.olean
    named = objects.words[editor.named(name) >> 3]
    definition = editor.value(other)
    editor.put(objects.field(definition, 0) + 8, named)
    if safety is not None:
        editor.data[editor.behind(definition)] = safety
    names, infos = ([objects.words[at >> 3] for at in olean.listed(index)] for index in (NAMES, CONSTANTS))
    one, two = (olean.names().index(each) for each in (name, other))
    infos[one] = infos[two]
    del names[two], infos[two]
    return whole(editor, names, infos)


def part_that_is_true(data: bytes) -> bytes:
    """A replay makes an empty type of it, unread, since it stands in another one's block."""
    return in_the_place_of(data, "Part", "Stand_in")


def constructor_that_is_another(data: bytes) -> bytes:
    """A replay leaves the definition out, and has the constructor from its type."""
    return in_the_place_of(data, "Three.one", "stand_in", safety=PARTIAL)


FORGED = {
    "block": (BLOCK, part_that_is_true, LeanSpec(statement="theorem target : True → False := sorry\n"), "block"),
    "constructor": (CONSTRUCTOR, constructor_that_is_another, FALSE, "invalid constructors"),
}


def verified(
    toolchain: Toolchain, folder: Path, spec: LeanSpec, source: str, forge: Callable[[bytes], bytes], *, examined: bool
) -> Any:
    class Taken(Local):
        """What a box is like where a submission has taken over the compilation; and what a check is like that does not
        look at the file."""

        def ask(self, message: dict[str, Any], seconds: float = 120) -> dict[str, Any]:
            bare = () if examined else message.pop("bare", ())
            answer = super().ask(message, seconds)
            if message.get("module") == "AssaySubmission":
                answer["file"] = base64.b64encode(forge(base64.b64decode(answer["file"]))).decode()
            return answer | ({"has": True} if bare else {})

    lean = LeanVerifier(lambda: Taken(toolchain, folder), toolchain, memory_mib=2560, most=1)
    try:
        return lean.verify(spec, source)
    finally:
        lean.close()


@pytest.mark.parametrize("which", FORGED)
def test_what_a_replay_leaves_out_proves_nothing(toolchain: Toolchain, tmp_path: Path, which: str) -> None:
    source, forge, spec, says = FORGED[which]
    found = verified(toolchain, tmp_path, spec, source, forge, examined=True)
    assert found.outcome is Outcome.HACK_SUSPECTED, found
    assert says in found.reason


def test_an_import_is_not_believed_where_the_kernel_says_otherwise(toolchain: Toolchain, tmp_path: Path) -> None:
    """Also where nobody looks at the file itself."""
    found = verified(toolchain, tmp_path, FALSE, CONSTRUCTOR, constructor_that_is_another, examined=False)
    assert found.ground is Ground.BROKEN, found
    assert "something else of the compiled file" in found.reason


def test_a_replay_does_not_go_on_where_lean_panics(local: Local) -> None:
    data = part_that_is_true(compiled(local, BLOCK))
    asked = {"do": "step", "module": "Replay", "replay": "X.olean", "seconds": 30, "memory_mib": 2048}
    found = local.ask(asked | {"files": {"X.olean": base64.b64encode(data).decode()}})
    assert found["ended"] == "signal", found
    assert "inductiveVal!" in found["err"]


def test_a_recursor_that_is_a_definition_is_found(local: Local) -> None:
    """The kernel makes one for each nested type, too."""
    data = compiled(local, NESTED)
    examine(Olean(data), ["Init"])
    with pytest.raises(AlteredError, match="uses one skipped by a replay"):
        examine(Olean(in_the_place_of(data, "Tree.rec_1", "stand_in", safety=PARTIAL)), ["Init"])


def test_notes_are_taken_out_whatever_they_are(local: Local) -> None:
    editor = Editor(compiled(local, NOTED))
    noted = [at for at in editor.objects.seen[Slot.TERM] if editor.objects.tag(at) == NOTE]
    for at in noted:
        editor.put(at + 8, editor.objects.base + 3 * 8)  # into the middle of a word
    olean = Olean(bytes(editor.data))
    assert noted
    assert examine(olean, ["Init"]) == noted
    left = olean.without_entries(noted)
    assert {left[at + 8 : at + 16] for at in noted} == {word(1)}
    asked = {"do": "step", "module": "Replay", "replay": "X.olean", "seconds": 30, "memory_mib": 2048}
    message = asked | {"files": {"X.olean": base64.b64encode(bytes(editor.data)).decode()}, "bare": ["X.olean"]}
    assert local.ask(message)["replayed"] == "yes"


def test_a_universe_level_is_as_deep_as_it_says(local: Local) -> None:
    """The kernel takes the deeper of two numbers for the higher one: all types would be one of them."""
    editor = Editor(compiled(local, HIGH))
    three = max(editor.objects.seen[Slot.LEVEL], key=lambda at: editor.objects.behind(at) >> 40)
    editor.put(three + 8, NOTHING)  # 1 that is as deep as 3
    data = {"files": {"X.olean": base64.b64encode(bytes(editor.data)).decode()}}
    asked = {"do": "step", "module": "Replay", "replay": "X.olean", "seconds": 30, "memory_mib": 2048}
    assert local.ask(asked | data)["replayed"] == "yes"
    found = local.ask(asked | data | {"bare": ["X.olean"]})
    assert (found["ended"], "a universe level with wrong data" in found["err"]) == ("altered", True)


def test_a_theorem_that_is_imported_is_not_declared_again(local: Local) -> None:
    """There are versions whose replay passes over it, whatever its proof; an import has this one, which the kernel may
    look into."""
    data = compiled(local, AGAIN)
    editor = Editor(data)
    base, olean = editor.objects.base, editor.objects.olean
    name = next(at for at in editor.objects.seen[Slot.NAME] if olean._name(at + base, {}) == "Iff.refl")
    editor.put(editor.objects.field(editor.value("mine"), 0) + 8, name + base)
    editor.put(editor.named("mine"), name + base)
    asked = {"do": "step", "module": "Replay", "replay": "X.olean", "seconds": 30, "memory_mib": 2048}
    for file, says in {data: "yes", bytes(editor.data): "Declared again: refl"}.items():
        found = local.ask(asked | {"files": {"X.olean": base64.b64encode(file).decode()}})
        assert found.get("replayed") == says, found
