"""Verifiers: they take a specification and a submission and return a verdict with its reason.

    from verifiers import AnswerSpec, Checker

    with Checker() as checker:
        print(checker.check(AnswerSpec(expected="1/2"), "0.5").reason)

Start reading at `checker.py` (the public entry point), then `registry/` (the kinds of specs) and `contract/` (verdicts,
errors and protocols that all kinds share). Each kind has a package: `exact`, `predicate`, `answers`, `smt`, `lean`,
`programs`, `checklists`, `games`, `files`. `workers` and `boxes` run verifiers in confined processes, `proposals` holds
cheap solvers, `selftest` runs the canaries. Nothing here knows about training, schedules or the ledger. Public names
load on first use: importing one part of this package imports no other part.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from verifiers.answers.spec import AnswerSpec as AnswerSpec
    from verifiers.checker import Checker as Checker
    from verifiers.checklists.spec import ChecklistSpec as ChecklistSpec
    from verifiers.contract.errors import SpecError as SpecError
    from verifiers.contract.verdict import Ground as Ground
    from verifiers.contract.verdict import Outcome as Outcome
    from verifiers.contract.verdict import Verdict as Verdict
    from verifiers.exact.spec import ExactSpec as ExactSpec
    from verifiers.lean.spec import LeanSpec as LeanSpec
    from verifiers.predicate.spec import PredicateSpec as PredicateSpec
    from verifiers.programs.spec import ProgramSpec as ProgramSpec
    from verifiers.registry.spec import SPEC as SPEC
    from verifiers.registry.spec import Spec as Spec
    from verifiers.smt.spec import SmtSpec as SmtSpec

_HOMES = {
    "SPEC": "registry.spec",
    "AnswerSpec": "answers.spec",
    "Checker": "checker",
    "ChecklistSpec": "checklists.spec",
    "ExactSpec": "exact.spec",
    "Ground": "contract.verdict",
    "LeanSpec": "lean.spec",
    "Outcome": "contract.verdict",
    "PredicateSpec": "predicate.spec",
    "ProgramSpec": "programs.spec",
    "SmtSpec": "smt.spec",
    "Spec": "registry.spec",
    "SpecError": "contract.errors",
    "Verdict": "contract.verdict",
}
__all__ = list(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
