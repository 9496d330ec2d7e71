"""Combines Z3, cvc5 and our own arithmetic into one finding: possible, impossible or unknown.

Impossible: Z3 refutes it and cvc5 does not contradict, or cvc5 refutes it where Z3 does not know. Possible: there are
values, which our own arithmetic checks. Solvers that contradict each other, or values that do not hold, raise
SolverBroke: nothing is then known about the submission.
"""

from __future__ import annotations

import hashlib
import importlib
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Any, Literal

from verifiers.smt.kind import SMT
from verifiers.smt.language.errors import SolverBroke, Undefined
from verifiers.smt.language.evaluate import evaluate
from verifiers.smt.language.render import shown
from verifiers.smt.language.terms import Term, functions
from verifiers.smt.language.values import Interpretation
from verifiers.smt.problem import Satisfiable, SolverAnswer

RULE = re.compile(r":rule ([^ )]+)")
MAX_PROOF = 3_000
Second = Literal["required", "if_available", "none"]


class Possible(StrEnum):
    YES = "possible"
    NO = "impossible"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class SolverFinding:
    possible: Possible
    answers: dict[str, str]
    """Answer of each solver and of our arithmetic, for the evidence."""
    exhausted: bool = False
    interpretation: Interpretation = field(default_factory=dict)
    values: dict[str, str] = field(default_factory=dict)
    """Values as text, if possible."""
    holds: bool | None = None
    """If possible: True when our own arithmetic finds every assertion true; None when it cannot tell."""
    by_zero: bool = False
    """True if our arithmetic cannot tell because of a division by zero."""


def tools() -> dict[str, str]:
    """Returns the versions of the installed SMT solvers by name, without starting one."""
    return SMT.tool_versions


class Bench:
    """SMT solvers, Z3 and optionally cvc5, for one submission."""

    def __init__(self, effort: int, second: Second) -> None:
        if "z3" not in tools():
            raise SolverBroke("Z3 is not installed")
        self._effort = effort
        self._second = second

    @cached_property
    def _z3(self) -> Any:
        return importlib.import_module("verifiers.smt.z3_solver").Z3(self._effort)

    @cached_property
    def _cvc5(self) -> Any:
        return importlib.import_module("verifiers.smt.cvc5_solver").Cvc5(self._effort)

    def look(self, assertions: Sequence[Term]) -> SolverFinding:
        """Asks the solvers if all assertions can hold together, or if that is impossible. Raises SolverBroke if a
        solver fails or they contradict each other, OutOfMemory if one runs out of memory."""
        asked = functions(assertions)
        first: SolverAnswer = self._z3.check(assertions, asked)
        if first.satisfiable is Satisfiable.YES:
            return self._possible(assertions, first)
        other = self._ask_second(assertions)
        answers = {"z3": _described(first), **({"cvc5": _described(other)} if other else {})}
        theirs = other.satisfiable if other else Satisfiable.UNKNOWN
        if first.satisfiable is Satisfiable.NO:
            if theirs is Satisfiable.YES:
                raise SolverBroke("Z3 finds it impossible, cvc5 possible")
            if self._second == "required" and theirs is not Satisfiable.NO:
                return SolverFinding(Possible.UNKNOWN, answers, exhausted=bool(other and other.exhausted))
            return SolverFinding(Possible.NO, answers)
        if theirs is Satisfiable.NO and self._second == "if_available":
            return SolverFinding(Possible.NO, answers)
        if theirs is Satisfiable.YES and self._second == "if_available":
            return SolverFinding(Possible.YES, answers)
        return SolverFinding(Possible.UNKNOWN, answers, exhausted=first.exhausted)

    def core(self, labelled: Mapping[str, Term]) -> list[str]:
        """Returns the names of some assertions that cannot hold together; all names if Z3 finds no such subset."""
        found: list[str] | None = self._z3.core(labelled)
        return list(labelled) if found is None else found

    def proof(self, assertions: Sequence[Term]) -> dict[str, Any]:
        """Returns cvc5's proof that the assertions are unsatisfiable: its digest, its rules, and the text if short."""
        if "cvc5" not in tools():
            return {"missing": "cvc5 is not installed"}
        text: str | None = self._cvc5.proof(assertions)
        if text is None:
            return {"missing": "cvc5 finds none"}
        rules = Counter(RULE.findall(text))
        known: dict[str, Any] = {
            "calculus": "CPC",
            "sha256": hashlib.sha256(text.encode()).hexdigest(),
            "characters": len(text),
            "steps": rules.total(),
            "trusted_steps": sum(count for rule, count in rules.items() if rule.startswith("trust")),
        }
        return {**known, "text": text} if len(text) <= MAX_PROOF else known

    def agree(self, term: Term, holds: bool) -> None:
        """Raises SolverBroke if Z3's simplifier contradicts our own evaluation of a term, which gave `holds`."""
        found: bool | None = self._z3.simplified(term)
        if found is not None and found is not holds:
            raise SolverBroke("Z3 and our own arithmetic contradict each other about values")

    def _possible(self, assertions: Sequence[Term], first: SolverAnswer) -> SolverFinding:
        answers = {"z3": "sat"}
        values = shown(first.interpretation, first.shown)
        holds, by_zero, quantified = True, False, False
        for term in assertions:
            try:
                held = evaluate(term, first.interpretation)
            except Undefined as error:
                holds, by_zero, quantified = False, by_zero or error.by_zero, quantified or error.quantified
                continue
            if held is not True:
                raise SolverBroke("Z3 gives values that do not hold")
        if holds:
            return SolverFinding(
                Possible.YES, {**answers, "arithmetic": "holds"}, False, first.interpretation, values, True
            )
        # Without quantifiers Z3 has checked its values itself, and cvc5 has loops that no effort limit ends.
        other = self._ask_second(assertions) if quantified or self._second == "required" else None
        if other is not None:
            answers["cvc5"] = _described(other)
            if other.satisfiable is Satisfiable.NO:
                raise SolverBroke("Z3 finds it possible, cvc5 impossible")
            if self._second == "required" and other.satisfiable is not Satisfiable.YES:
                return SolverFinding(Possible.UNKNOWN, answers, exhausted=other.exhausted)
        return SolverFinding(Possible.YES, answers, False, first.interpretation, values, None, by_zero)

    def _ask_second(self, assertions: Sequence[Term]) -> SolverAnswer | None:
        if self._second == "none":
            return None
        if "cvc5" not in tools():
            if self._second == "required":
                raise SolverBroke("cvc5 is required and not installed")
            return None
        answer: SolverAnswer = self._cvc5.check(assertions)
        return answer


def _described(answer: SolverAnswer) -> str:
    return f"{answer.satisfiable} ({answer.why})" if answer.why else str(answer.satisfiable)
