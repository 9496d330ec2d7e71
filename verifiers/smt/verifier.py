"""Decides claims: reads both sides in our own language, asks the solvers, and says what the answer rests on.

Only impossibility proves: the assumptions together with the negated goal, a better value, an input that tells two terms
apart. Before that counts, the assumptions must be shown to be possible, and no divisor may be zero where it matters.
What neither solver knows is no proof. Every question is limited by effort, so the verdict is the same everywhere.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

from verifiers.answers.reading import clipped
from verifiers.errors import SpecError
from verifiers.smt import questions
from verifiers.smt.bench import Bench, tools
from verifiers.smt.errors import ClaimError, CommandError, FormError, SolverBroke
from verifiers.smt.problem import Problem, problem
from verifiers.smt.ruling import Ruling, unfinished
from verifiers.smt.spec import SmtSpec
from verifiers.verdict import Ground, Outcome, Verdict

DECIDE: dict[str, Callable[[Problem, str, Bench], Ruling]] = {
    "entails": questions.entails,
    "model": questions.model,
    "optimum": questions.optimum,
    "equivalent": questions.equivalent,
}


class SmtVerifier:
    name = "smt"
    version = "2+" + "+".join(f"{name}{version}" for name, version in tools().items())

    def check(self, spec: SmtSpec, *, prove: bool = False) -> None:
        """Raises SpecError for a claim that cannot be read, lacks what its question is about, or (asked to prove) has
        impossible assumptions, or accepts whatever is supplied."""
        found = _readable(spec)
        if not prove:
            return
        bench = Bench(spec.effort, spec.second)
        try:
            questions.worth_asking(found, bench)
        except ClaimError as error:
            raise SpecError(f"the claim cannot be used: {error}") from None
        except SolverBroke:
            return  # what it is worth is not known; the verdict will say so

    def verify(self, spec: SmtSpec, submission: str) -> Verdict:
        """Raises MemoryError where a solver runs out of it: the process is then spent."""
        found = _readable(spec)
        try:
            ruling = DECIDE[spec.question](found, submission, Bench(spec.effort, spec.second))
        except CommandError as error:
            outcome = Outcome.HACK_SUSPECTED if error.tampering else Outcome.FAIL
            ruling = Ruling(outcome, Ground.FORBIDDEN, str(error), {"submitted": clipped(submission)})
        except FormError as error:
            ruling = unfinished(f"not in the form asked for: {error}", {"submitted": clipped(submission)})
        except ClaimError as error:
            ruling = Ruling(
                Outcome.FAIL, Ground.UNREADABLE, f"cannot be read: {error}", {"submitted": clipped(submission)}
            )
        except SolverBroke as error:
            ruling = Ruling(Outcome.INFRA_ERROR, Ground.BROKEN, str(error), {})
        evidence: dict[str, Any] = {
            "question": spec.question,
            "claim_sha256": hashlib.sha256(spec.claim.encode()).hexdigest(),
            "division": spec.division,
            **ruling.evidence,
        }
        return Verdict(
            outcome=ruling.outcome,
            score=1.0 if ruling.outcome is Outcome.PASS else 0.0,
            reason=ruling.reason,
            ground=ruling.ground,
            evidence=evidence,
            verifier=self.name,
            version=self.version,
            tools=tools(),
            seconds=0.0,
        )


def _readable(spec: SmtSpec) -> Problem:
    try:
        return problem(spec)
    except ClaimError as error:
        raise SpecError(
            f"the claim cannot be used: {error}",
            hint="It is SMT-LIB 2.6 with the commands and operators that docs/verifiers.md lists.",
        ) from None
