"""What a solver answers."""

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
    """For `unknown`: in the solver's words."""
    exhausted: bool = False
    """Whether it gave up because of the effort allowed."""
    interpretation: Interpretation = field(default_factory=dict)
    """For `sat`: what was asked for and is of a kind that we have values for."""
    shown: dict[str, str] = field(default_factory=dict)
    """For `sat`: the value of every constant and function, as text."""
