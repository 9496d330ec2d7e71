"""Verifier of the kind `smt`: parses both sides in our own language, queries the solvers, and returns a verdict with
its basis.

Only unsatisfiability proves: of the assumptions with the negated goal, of a better value, of an input that
distinguishes two terms. For a proof, the assumptions must also be shown satisfiable, and no divisor may be zero where
it matters. An `unknown` is not a proof. Every query is limited by effort, so verdicts are the same on every machine.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

from verifiers.contract.errors import SpecError
from verifiers.contract.text import escaped
from verifiers.contract.verdict import Ground, Judgement, Verdict
from verifiers.smt import questions
from verifiers.smt.bench import Bench, tools
from verifiers.smt.kind import SMT
from verifiers.smt.language.errors import ClaimError, CommandError, FormError, SolverBroke
from verifiers.smt.problem import SmtProblem, problem
from verifiers.smt.spec import SmtSpec

DECIDE: dict[str, Callable[[SmtProblem, str, Bench], Judgement]] = {
    "entails": questions.entails,
    "model": questions.model,
    "optimum": questions.optimum,
    "equivalent": questions.equivalent,
}


class SmtVerifier:
    name = SMT.name
    version = SMT.version

    def check(self, spec: SmtSpec, *, prove: bool = False) -> None:
        """Raises SpecError for a claim that is unreadable or lacks what its question needs. With `prove`, also if its
        assumptions are unsatisfiable or any submission would pass."""
        found = _readable(spec)
        if not prove:
            return
        bench = Bench(spec.effort, spec.second)
        try:
            questions.worth_asking(found, bench)
        except ClaimError as error:
            raise SpecError(f"the claim cannot be used: {error}") from None
        except SolverBroke:
            return  # undecided here; the verdict will say so

    def verify(self, spec: SmtSpec, submission: str) -> Verdict:
        """Verifies a submission for an SMT claim. Raises MemoryError if a solver ran out of memory: this process must
        then end."""
        found = _readable(spec)
        try:
            judgement = DECIDE[spec.question](found, submission, Bench(spec.effort, spec.second))
        except ClaimError as error:
            judgement = _refused(error, submission)
        except SolverBroke as error:
            judgement = Judgement(Ground.BROKEN, str(error), {})
        evidence: dict[str, Any] = {
            "question": spec.question,
            "claim_sha256": hashlib.sha256(spec.claim.encode()).hexdigest(),
            "division": spec.division,
            **judgement.evidence,
        }
        return judgement._replace(evidence=evidence).verdict(self.name, self.version, tools=tools())


def _refused(error: ClaimError, submission: str) -> Judgement:
    evidence = {"submitted": escaped(submission)}
    if isinstance(error, CommandError):
        return Judgement(Ground.FORBIDDEN, str(error), evidence, suspected=error.tampering)
    if isinstance(error, FormError):
        return Judgement(Ground.UNFINISHED, str(error), evidence)
    return Judgement(Ground.UNREADABLE, f"cannot be read: {error}", evidence)


def _readable(spec: SmtSpec) -> SmtProblem:
    try:
        return problem(spec)
    except ClaimError as error:
        raise SpecError(
            f"the claim cannot be used: {error}",
            hint="It is SMT-LIB 2.6 with the commands and operators that docs/verifiers/smt.md lists.",
        ) from None
