"""Closing tactics of Lean, each proposed as a whole proof; the kernel decides."""

from __future__ import annotations

import re
from collections.abc import Generator

from verifiers.contract.errors import SpecError
from verifiers.contract.protocols import Proposal, Solver, SolverTools
from verifiers.lean.spec import LeanSpec
from verifiers.lean.statement import read_statement

TACTICS = (
    "decide",
    "rfl",
    "omega",
    "simp",
    "intros; rfl",
    "intros; assumption",
    "intros; omega",
    "intros; simp_all",
    "intros; constructor <;> assumption",
    "intros; exact ⟨by assumption, by assumption⟩",
    "intros; contradiction",
    "trivial",
    "intros; ac_rfl",
    "intros; grind",
)
BY_INDUCTION = ("induction {0} <;> simp_all", "induction {0} <;> simp_all <;> omega", "cases {0} <;> simp_all")
"""Tactics for the first natural-number variables of the statement, by name."""
COUNTED = re.compile(r"\((?P<names>[A-Za-z_][\w' ]*):\s*(?:Nat|ℕ)\s*\)")
MOST_VARIABLES = 2
ONLY_MATHLIB = ("norm_num", "ring", "intros; linarith", "intros; nlinarith", "intros; positivity", "tauto")


class TacticSolver:
    name = "lean tactics"
    at_once = 4

    def proposals(
        self, spec: LeanSpec, question: str, tools: SolverTools, seconds: float
    ) -> Generator[Proposal, None, None]:
        try:
            says, modules = signature(spec)
        except SpecError as error:
            tools.notes.append(str(error))
            return
        mathlib = any(module.split(".")[0] == "Mathlib" for module in modules)
        names = " ".join(found["names"] for found in COUNTED.finditer(says)).split()[:MOST_VARIABLES]
        induction = (tactic.format(name) for name in names for tactic in BY_INDUCTION)
        for tactic in (*TACTICS, *(ONLY_MATHLIB if mathlib else ()), *induction):
            yield Proposal(f"{says} := by\n  {tactic}\n", f"lean {tactic}")


def solvers(_spec: LeanSpec, _question: str, _files: bool) -> list[Solver]:
    return [TacticSolver()]


def signature(spec: LeanSpec) -> tuple[str, tuple[str, ...]]:
    """Returns a Lean spec's theorem without its proof, and its imports. Raises SpecError."""
    statement = read_statement(spec)
    return statement.signature, statement.imports
