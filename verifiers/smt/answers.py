"""Answers of an SMT solver."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from verifiers.smt.language.values import Interpretation


class Satisfiable(StrEnum):
    YES = "sat"
    NO = "unsat"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class SolverAnswer:
    satisfiable: Satisfiable
    why: str = ""
    """Reason for `unknown`, in the solver's words."""
    exhausted: bool = False
    """True if the solver ran out of its effort limit."""
    interpretation: Interpretation = field(default_factory=dict)
    """Values for `sat`, of the requested symbols, where our value types can represent them."""
    shown: dict[str, str] = field(default_factory=dict)
    """Values for `sat`, of every constant and function, as text."""
