"""Proofs that need no idea: each of Lean's decision procedures and simplifiers by itself, then after `intro`.

Which of them a toolchain has depends on it: a tactic that it does not know is one failed proposal. The order is from
the cheapest and most often right to the dearest.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from appliance.jobs.solvers.proposal import Proposal
from verifiers.spec import LeanSpec

PLAIN = ("rfl", "decide", "trivial", "simp", "omega", "simp_all", "assumption", "contradiction", "exact?", "grind")
MATHLIB = ("norm_num", "ring", "linarith", "nlinarith", "positivity", "field_simp", "aesop", "tauto")
THEN = ("omega", "simp", "simp_all", "decide", "assumption", "constructor <;> simp_all", "grind")
DECLARATION = re.compile(r"^(?:theorem|lemma)\s.*", re.DOTALL | re.MULTILINE)


def proposals(spec: LeanSpec) -> Iterator[Proposal]:
    """Nothing where the last declaration of the statement does not look like a theorem with a body to replace."""
    found = list(DECLARATION.finditer(spec.statement))
    head = found[-1].group().rpartition(":=")[0].rstrip() if found else ""
    if not head:
        return
    mathlib = MATHLIB if "Mathlib" in spec.statement else ()
    for tactic in (*PLAIN, *mathlib):
        yield Proposal(f"{head} := by\n  {tactic}\n", f"lean: {tactic}")
    for tactic in (*THEN, *mathlib):
        yield Proposal(f"{head} := by\n  intros\n  {tactic}\n", f"lean: intros, {tactic}")
