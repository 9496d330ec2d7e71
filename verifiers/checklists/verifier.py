"""Checks a text against its list: a worker decides the hard items, a model judge grades the soft ones.

The judge never makes a text pass. The outcome is that of the hard items, or a fail if the soft items miss the mean
grade that the spec requires. With soft items the score of a text is

    hard * (1 - share + share * soft)

`hard` is 1 for a passing text; for a failing one 0, or its items' share if the spec gives credit; `soft` is the
weighted mean of the grades. Without a judge the verdict reports the soft items as `not judged` and they earn nothing;
if the spec requires them there is no verdict (`infra_error`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from verifiers.boxes.conductor import ConductorParts
from verifiers.checklists.hard import HardVerifier
from verifiers.checklists.judge import grade_of
from verifiers.checklists.spec import ChecklistSpec
from verifiers.contract.protocols import Judge, JudgeError
from verifiers.contract.text import escaped
from verifiers.contract.verdict import Ground, Outcome, Verdict

Decide = Callable[[ChecklistSpec, str, float], Verdict]
"""Maps spec, submission and seconds to the verdict of the hard part, from a worker that can be killed."""


def conductor(parts: ConductorParts) -> ChecklistVerifier:
    """Builds the checklist verifier, with a text worker for items checked by code and a model judge for the others."""
    return ChecklistVerifier(parts.service().verify, parts.judge)


class ChecklistVerifier:
    """Verifier of the kind `checklist`; thread-safe if the judge is."""

    name = HardVerifier.name
    version = HardVerifier.version

    def __init__(self, decide: Decide, judge: Judge | None = None) -> None:
        self._decide = decide
        self._judge = judge
        self._hard = HardVerifier()

    def check(self, spec: ChecklistSpec, *, prove: bool = False) -> None:
        """Raises SpecError for a checklist whose items cannot decide anything. With `prove`, also if an empty answer
        would meet it."""
        self._hard.check(spec, prove=prove)

    def close(self) -> None:
        """No-op: this verifier holds no resources."""

    def verify(self, spec: ChecklistSpec, submission: str, seconds: float) -> Verdict:
        """Verifies a text against a checklist; a model judge then grades the items that code cannot decide. `seconds`
        limits the part done by code; the judge is asked only if that part passes or earns credit."""
        verdict = self._decide(spec, submission, seconds)
        if not spec.soft or not verdict.score:
            return verdict
        if self._judge is None:
            return self._unjudged(spec, verdict, "no judge")
        try:
            grades = [grade_of(self._judge, item.point, spec.question, submission) for item in spec.soft]
        except JudgeError as error:
            return self._unjudged(spec, verdict, escaped(str(error)))
        graded = list(zip(spec.soft, grades, strict=True))
        mean = sum(item.weight * found.grade for item, found in graded) / sum(item.weight for item in spec.soft)
        shown = [{**asdict(found), "name": escaped(item.name)} for item, found in graded]
        evidence = {**verdict.evidence, "soft": shown, "soft_mean": round(mean, 6)}
        changed: dict[str, Any] = {"evidence": evidence, "score": _score(spec, verdict.score, mean)}
        if verdict.passed and mean < spec.soft_needed:
            earned = changed["score"] if spec.credit == "items" else 0.0
            reason = f"soft items: a mean grade of {mean:.2f}, required: {spec.soft_needed:.2f}"
            changed |= {"outcome": Outcome.FAIL, "ground": Ground.REFUTED, "reason": reason, "score": earned}
        else:
            changed["reason"] = f"{verdict.reason}; soft items: a mean grade of {mean:.2f}"
        return verdict.model_copy(update=changed)

    def _unjudged(self, spec: ChecklistSpec, verdict: Verdict, why: str) -> Verdict:
        names = [escaped(item.name) for item in spec.soft]
        evidence = {**verdict.evidence, "not_judged": names, "because": why}
        if verdict.passed and spec.soft_needed > 0:
            reason = f"the soft items were not judged ({why}), and the list needs them"
            changed = {"outcome": Outcome.INFRA_ERROR, "ground": Ground.BROKEN, "reason": reason, "score": 0.0}
            return verdict.model_copy(update={**changed, "evidence": evidence})
        reason = f"{verdict.reason}; {len(names)} soft items not judged: {why}"
        score = _score(spec, verdict.score, 0.0)
        return verdict.model_copy(update={"reason": reason, "evidence": evidence, "score": score})


def _score(spec: ChecklistSpec, hard: float, soft: float) -> float:
    return round(hard * (1.0 - spec.soft_share + spec.soft_share * soft), 9)
