"""Statements that the canaries submit to, and how a case is said."""

from __future__ import annotations

from verifiers.case import Case
from verifiers.lean.spec import LeanSpec

FALSE = LeanSpec(statement="theorem target : 2 + 2 = 5 := sorry\n", seconds=20)
TRUE = LeanSpec(statement="theorem target : 2 + 2 = 4 := sorry\n", seconds=20)
FORALL = LeanSpec(statement="theorem target (n : Nat) : n + 0 = n ∧ 0 + n = n := sorry\n", seconds=20)
LOGIC = LeanSpec(statement="theorem target (p q : Prop) : p ∧ q → q ∧ p := by\n  sorry\n", seconds=20)
UNIVERSES = LeanSpec(statement="universe u\ntheorem target (α : Type u) (a : α) : a = a := sorry\n", seconds=20)
EXISTS = LeanSpec(statement="theorem target : ∃ x : Nat, x * x = 49\n", seconds=20)
CHOICE = LeanSpec(statement="theorem target (p : Nat → Prop) (h : ∃ x, p x) : ∃ x, p x := sorry\n", seconds=20)
SPACES = LeanSpec(statement="namespace Assay.Here\ntheorem target : 1 + 1 = 2 := sorry\nend Assay.Here\n", seconds=20)
DEFINED = LeanSpec(
    statement="/-- Twice a number. -/\ndef twice (n : Nat) : Nat := n + n\n\nvariable (n : Nat)\n\n"
    "theorem target : twice n = n + n := sorry\n",
    seconds=20,
)
DEFINED_FALSE = LeanSpec(
    statement="def twice (n : Nat) : Nat := n + n\n\ntheorem target : twice 1 = 3 := sorry\n", seconds=20
)
QUICK = LeanSpec(statement="theorem target : 2 + 2 = 5 := sorry\n", seconds=1, memory_mib=1024)


def case(
    name: str, spec: LeanSpec, submission: str, why: str, *rows: int, honest: bool = False, suspected: bool = False
) -> Case:
    return Case(name=name, spec=spec, submission=submission, honest=honest, rows=rows, suspected=suspected, why=why)


def good(name: str, spec: LeanSpec, submission: str, why: str) -> Case:
    return case(name, spec, submission, why, honest=True)


def cheat(name: str, spec: LeanSpec, submission: str, why: str, *rows: int) -> Case:
    return case(name, spec, submission, why, *rows, suspected=True)


def wrong(name: str, spec: LeanSpec, submission: str, why: str, *rows: int) -> Case:
    return case(name, spec, submission, why, *rows)
