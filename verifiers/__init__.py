"""What is true: a specification and a submission go in, a verdict with its reason comes out.

    from verifiers import AnswerSpec, Checker

    with Checker() as checker:
        print(checker.check(AnswerSpec(expected="1/2"), "0.5").reason)

The names here are loaded when they are first used: importing a part of this package loads none of the others.
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
