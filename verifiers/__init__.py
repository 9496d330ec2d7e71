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
    from verifiers.checker import Checker
    from verifiers.errors import SpecError
    from verifiers.spec import (
        SPEC,
        AnswerSpec,
        ChecklistSpec,
        ExactSpec,
        ExpressionSpec,
        IntegerSpec,
        LeanSpec,
        PredicateSpec,
        ProgramSpec,
        SmtSpec,
        Spec,
    )
    from verifiers.verdict import Ground, Outcome, Verdict

__all__ = [
    "SPEC",
    "AnswerSpec",
    "Checker",
    "ChecklistSpec",
    "ExactSpec",
    "ExpressionSpec",
    "Ground",
    "IntegerSpec",
    "LeanSpec",
    "Outcome",
    "PredicateSpec",
    "ProgramSpec",
    "SmtSpec",
    "Spec",
    "SpecError",
    "Verdict",
]
_ELSEWHERE = {
    "Checker": "verifiers.checker",
    "Ground": "verifiers.verdict",
    "Outcome": "verifiers.verdict",
    "SpecError": "verifiers.errors",
    "Verdict": "verifiers.verdict",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_ELSEWHERE.get(name, "verifiers.spec")), name)
