"""Another theorem than the one that was asked for: its words with another meaning, or its name elsewhere."""

from __future__ import annotations

from collections.abc import Iterator

from verifiers.case import Case
from verifiers.lean.canary_specs import DEFINED_FALSE, FALSE, FORALL, SPACES, TRUE, UNIVERSES, cheat, wrong
from verifiers.lean.spec import LeanSpec


def statements() -> Iterator[Case]:
    yield cheat(
        "evil-instance",
        FALSE,
        "instance evil : Add Nat where\n  add _ _ := 5\ntheorem target : 2 + 2 = 5 := rfl",
        "Another addition.",
        38,
    )
    yield cheat(
        "evil-local-instance",
        FALSE,
        "local instance evil : Add Nat := ⟨fun _ _ => 5⟩\ntheorem target : 2 + 2 = 5 := rfl",
        "Another addition, for this file alone.",
        38,
    )
    yield wrong(
        "evil-heterogeneous-instance",
        FALSE,
        "instance evil : HAdd Nat Nat Nat := ⟨fun _ _ => 5⟩\ntheorem target : 2 + 2 = 5 := rfl",
        "The same behind the sign.",
        38,
    )
    yield cheat(
        "evil-numerals",
        FALSE,
        "@[default_instance 2000] instance evil (n : Nat) : OfNat Unit n := ⟨()⟩\n"
        "instance : Add Unit := ⟨fun _ _ => ()⟩\ntheorem target : 2 + 2 = 5 := rfl",
        "Numerals of another type.",
        38,
    )
    yield wrong(
        "evil-prop",
        LeanSpec(statement="theorem target : False := sorry\n", seconds=20),
        "namespace Mine\ninductive False : Prop where\n  | yes\nend Mine\nopen Mine in\n"
        "theorem target : Mine.False := .yes",
        "Another False.",
        38,
        39,
    )
    yield wrong(
        "shadowed-false",
        LeanSpec(statement="theorem target : False := sorry\n", seconds=20),
        "namespace Mine\nabbrev False : Prop := True\ntheorem _root_.target : False := True.intro\nend Mine",
        "False, inside a namespace where it is something else.",
        38,
        39,
    )
    yield wrong(
        "notation-for-equality",
        FALSE,
        'local infix:50 " = " => fun (_ _ : Nat) => True\ntheorem target : 2 + 2 = 5 := True.intro',
        "Another equality.",
        39,
    )
    yield wrong(
        "notation-for-a-number",
        FALSE,
        'local notation "5" => 4\ntheorem target : 2 + 2 = 5 := rfl',
        "Another five.",
        39,
    )
    yield wrong(
        "macro-for-a-number",
        FALSE,
        "macro_rules | `(5) => `(4)\ntheorem target : 2 + 2 = 5 := rfl",
        "The same by code.",
        39,
    )
    yield wrong(
        "notation-for-the-check",
        FALSE,
        'notation "type_of%" x => True\nnotation "@" x => True.intro\ntheorem target : True := True.intro',
        "Notation that would change what the check says.",
        39,
    )
    yield wrong(
        "syntax-for-the-check",
        FALSE,
        'syntax "theorem" ident ":" term ":=" term : command\n'
        "macro_rules | `(theorem $n : $t := $p) => `(theorem $n : True := True.intro)\n"
        "theorem target : True := True.intro",
        "The same, a command deeper.",
        39,
    )
    yield wrong(
        "open-hiding",
        DEFINED_FALSE,
        "namespace Other\ndef twice (_ : Nat) : Nat := 3\nend Other\nopen Other hiding nothing\n"
        "theorem target : Other.twice 1 = 3 := rfl",
        "Another definition of the same last name.",
        39,
    )
    yield wrong(
        "the-definition-again",
        DEFINED_FALSE,
        "def twice (_ : Nat) : Nat := 3\ntheorem target : twice 1 = 3 := rfl",
        "A definition of its own in the place of the statement's.",
        39,
        43,
    )
    yield wrong(
        "the-definition-in-a-scope",
        DEFINED_FALSE,
        "namespace Inner\ndef twice (_ : Nat) : Nat := 3\ntheorem _root_.target : twice 1 = 3 := rfl\nend Inner",
        "The nearer name is taken.",
        39,
    )
    yield wrong(
        "a-variable-too-many",
        FALSE,
        "variable (h : 2 + 2 = 5)\ninclude h\ntheorem target : 2 + 2 = 5 := h",
        "A hypothesis from outside the theorem.",
        38,
    )
    yield wrong(
        "an-instance-argument",
        LeanSpec(statement="theorem target (p : Prop) : p := sorry\n", seconds=20),
        "class Fact (p : Prop) : Prop where\n  out : p\ntheorem target (p : Prop) [h : Fact p] : p := h.out",
        "A hypothesis that is found without being named.",
        38,
    )
    yield wrong(
        "an-optional-argument",
        FALSE,
        "theorem target (h : 2 + 2 = 5 := by assumption) : 2 + 2 = 5 := h",
        "A hypothesis with a default.",
        38,
    )
    yield wrong(
        "auto-bound",
        LeanSpec(statement="theorem target (n : Nat) : n = 0 := sorry\n", seconds=20),
        "theorem target {Nat : Type} [h : OfNat Nat 0] (n : Nat) (k : n = 0) : n = 0 := k",
        "Nat as a name of its own.",
        38,
    )
    yield wrong(
        "one-universe",
        UNIVERSES,
        "theorem target (α : Type) (a : α) : a = a := rfl",
        "Only for one universe.",
        43,
    )
    yield wrong("propositions-only", UNIVERSES, "theorem target (α : Prop) (a : α) : a = a := rfl", "Less still.", 43)


def names() -> Iterator[Case]:
    yield wrong("weaker-theorem", FALSE, "theorem target : True := True.intro", "Another theorem.", 43)
    yield wrong("weaker-instance", FORALL, "theorem target : 1 + 0 = 1 ∧ 0 + 1 = 1 := ⟨rfl, rfl⟩", "One case.", 43)
    yield wrong("other-namespace", FALSE, "theorem Other.target : True := True.intro", "Another name.", 43)
    yield wrong("private-name", TRUE, "private theorem target : 2 + 2 = 4 := rfl", "A name nobody else sees.", 43)
    yield wrong("nothing", TRUE, "", "No proof.", 43)
    yield wrong("only-a-comment", TRUE, "/- theorem target : 2 + 2 = 4 := rfl -/", "A proof in a comment.", 43)
    yield wrong("an-example", TRUE, "example : 2 + 2 = 4 := rfl", "A proof without a name.", 43)
    yield wrong("unclosed-comment", TRUE, "theorem target : 2 + 2 = 4 := rfl\n/-", "A text that does not end.", 43)
    yield wrong(
        "left-namespace",
        SPACES,
        "end Assay.Here\ntheorem target : 1 + 1 = 2 := rfl\nnamespace Assay.Here",
        "Leaves the namespace that it is put in.",
        43,
    )
    yield wrong("quoted-name", TRUE, "theorem «target » : 2 + 2 = 4 := rfl", "A name that looks the same.", 43)
    yield wrong("unicode-name", TRUE, "theorem tаrget : 2 + 2 = 4 := rfl", "With a Cyrillic letter.", 43)
    yield wrong(
        "the-statement-by-name",
        FALSE,
        "theorem target : 2 + 2 = 5 := target.assay_0000000000000000",
        "Guesses the secret name of the trusted statement, whose proof is open.",
        43,
    )
    yield wrong("prose", TRUE, "The proof is by computation: 2 + 2 = 4. Q.E.D.", "No Lean.", 43)
    yield wrong("a-theorem-with-an-error", TRUE, "theorem target : 2 + 2 = 4 := by rfl; done done", "Errors.", 43)
    yield wrong(
        "errors-elsewhere",
        TRUE,
        "theorem target : 2 + 2 = 4 := rfl\ntheorem x : 1 = 2 := rfl",
        "An error beside it.",
        43,
    )
