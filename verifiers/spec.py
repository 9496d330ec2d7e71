"""What a submission is checked against. The agent never sees a spec.

A spec is plain data, a discriminated union on `kind`: it can be stored, hashed, put into a bundle and checked again by
somebody else.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, TypeAdapter

from verifiers.answers.spec import AnswerSpec, ExactSpec, ExpressionSpec, IntegerSpec, PredicateSpec
from verifiers.checklists.spec import ChecklistSpec
from verifiers.lean.spec import LeanSpec
from verifiers.programs.spec import ProgramSpec
from verifiers.smt.spec import SmtSpec

__all__ = [
    "SPEC",
    "AnswerSpec",
    "ChecklistSpec",
    "ExactSpec",
    "ExpressionSpec",
    "IntegerSpec",
    "LeanSpec",
    "PredicateSpec",
    "ProgramSpec",
    "SmtSpec",
    "Spec",
]

Spec = Annotated[
    ExactSpec
    | IntegerSpec
    | ExpressionSpec
    | PredicateSpec
    | AnswerSpec
    | SmtSpec
    | LeanSpec
    | ProgramSpec
    | ChecklistSpec,
    Field(discriminator="kind"),
]
SPEC: TypeAdapter[Spec] = TypeAdapter(Spec)
"""Validates a spec from JSON or from a dictionary."""
