"""Honest proofs, in the forms that people and models write."""

from __future__ import annotations

from collections.abc import Iterator

from verifiers.case import Case
from verifiers.lean.canary_specs import CHOICE, DEFINED, EXISTS, FORALL, LOGIC, SPACES, TRUE, UNIVERSES, good


def honest() -> Iterator[Case]:
    yield good("by-computation", TRUE, "theorem target : 2 + 2 = 4 := rfl", "The shortest proof.")
    yield good("by-decide", TRUE, "theorem target : 2 + 2 = 4 := by decide", "A proof by a tactic.")
    yield good(
        "by-induction",
        FORALL,
        "theorem zero_add' (n : Nat) : 0 + n = n := by\n  induction n with\n  | zero => rfl\n"
        "  | succ n ih => exact congrArg Nat.succ ih\n"
        "theorem target (n : Nat) : n + 0 = n ∧ 0 + n = n := ⟨rfl, zero_add' n⟩",
        "With a lemma of its own.",
    )
    yield good(
        "by-cases",
        LOGIC,
        "theorem target (p q : Prop) : p ∧ q → q ∧ p := by\n  intro h\n  cases h with\n  | intro l r => exact ⟨r, l⟩",
        "Structured tactics.",
    )
    yield good("by-witness", EXISTS, "theorem target : ∃ x : Nat, x * x = 49 := ⟨7, by decide⟩", "An existence.")
    yield good(
        "every-universe",
        UNIVERSES,
        "universe u\ntheorem target (α : Type u) (a : α) : a = a := rfl",
        "The statement's header, said again.",
    )
    yield good(
        "every-universe-under-another-name",
        UNIVERSES,
        "theorem target.{v} (β : Type v) (b : β) : b = b := Eq.refl b",
        "Names of bound variables and universes mean nothing.",
    )
    yield good(
        "more-general",
        TRUE,
        "theorem general (n : Nat) : n = n := rfl\ntheorem target : 2 + 2 = 4 := general 4",
        "What is proved is equal by computation.",
    )
    yield good(
        "as-a-definition",
        TRUE,
        "def target : 2 + 2 = 4 := rfl",
        "A definition whose type is the statement is as much a proof as a theorem.",
    )
    yield good(
        "with-the-standard-axioms",
        CHOICE,
        "theorem target (p : Nat → Prop) (h : ∃ x, p x) : ∃ x, p x :=\n"
        "  let i : Nonempty (Subtype p) := h.rec (fun w k => ⟨⟨w, k⟩⟩)\n"
        "  ⟨(Classical.choice i).val, (Classical.choice i).property⟩",
        "Choice is one of the three axioms of ordinary mathematics.",
    )
    yield good(
        "the-full-name",
        SPACES,
        "theorem Assay.Here.target : 1 + 1 = 2 := rfl",
        "One way to write a name in a namespace.",
    )
    yield good(
        "the-namespace-again",
        SPACES,
        "namespace Assay.Here\ntheorem target : 1 + 1 = 2 := rfl\nend Assay.Here",
        "Another way.",
    )
    yield good("root-name", SPACES, "theorem _root_.Assay.Here.target : 1 + 1 = 2 := rfl", "And a third.")
    yield good(
        "a-definition-of-the-statement",
        DEFINED,
        "theorem target : twice n = n + n := rfl",
        "Definitions and variables of the statement are there.",
    )
    yield good(
        "the-whole-file-again",
        DEFINED,
        "/-- Twice a number. -/\ndef twice (n : Nat) : Nat := n + n\nvariable (n : Nat)\n"
        "theorem target : twice n = n + n := by rfl",
        "People fill in the file that they were given.",
    )
    yield good(
        "forbidden-words-in-comments",
        TRUE,
        "/- no sorry, no axiom, no native_decide,\n   /- set_option debug.skipKernelTC true -/ #eval -/\n"
        "-- unsafe implemented_by initialize run_cmd\n"
        "/-- Not `sorry`, and no `axiom`. -/\ntheorem target : 2 + 2 = 4 := rfl -- sorry",
        "Words in comments are no code.",
    )
    yield good(
        "names-like-forbidden-words",
        TRUE,
        "theorem axiomatic : 2 + 2 = 4 := rfl\ntheorem sorry' : 2 + 2 = 4 := axiomatic\n"
        "theorem my_macro : 2 + 2 = 4 := sorry'\ntheorem «elab it» : 2 + 2 = 4 := my_macro\n"
        "theorem target : 2 + 2 = 4 := «elab it»",
        "Parts of words are no words.",
    )
    yield good(
        "more-heartbeats",
        TRUE,
        "set_option maxHeartbeats 0 in\nset_option maxRecDepth 1000000 in\ntheorem target : 2 + 2 = 4 := by decide",
        "People ask for more time out of habit; they get what the spec allows.",
    )
    yield good(
        "sorry-beside-it",
        TRUE,
        "theorem unused : 2 + 2 = 5 := sorry\ntheorem target : 2 + 2 = 4 := rfl",
        "What the theorem does not use does not matter.",
    )
    yield good(
        "questions-to-lean",
        TRUE,
        "theorem target : 2 + 2 = 4 := rfl\n#print axioms target\n#check target",
        "Asking is not cheating.",
    )
    yield good(
        "own-types",
        TRUE,
        "inductive Colour where\n  | red\n  | green\nprivate theorem hidden : 2 + 2 = 4 := rfl\n"
        "@[simp] theorem shown : 2 + 2 = 4 := hidden\nopaque secret : Nat\n"
        "theorem target : 2 + 2 = 4 := shown",
        "Types, private lemmas, attributes and opaque constants of its own.",
    )
