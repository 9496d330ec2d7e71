"""A text against its list: the hard items are decided in a worker, a model judge grades the soft ones.

What the judge says never makes a text pass. The outcome is that of the hard items, or a fail where the spec asks for a
mean grade that the soft ones miss. With soft items the score of a text is

    hard * (1 - share + share * soft)

`hard` is 1 for a text that passes, and for one that fails 0, or what its items earned where the spec gives credit;
`soft` is the weighted mean of the grades. Without a judge the soft items are `not judged`, which the verdict says,
and they earn nothing of their share; where the spec needs them there is no verdict (`infra_error`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from verifiers.boxes.conductor import ConductorParts
from verifiers.checklists.hard import HardVerifier
from verifiers.checklists.judge import grade_of
from verifiers.checklists.spec import ChecklistSpec
from verifiers.contract.judge import Judge, JudgeError
from verifiers.contract.text import escaped
from verifiers.contract.verdict import Ground, Outcome, Verdict

Decide = Callable[[ChecklistSpec, str, float], Verdict]
"""Spec, submission, seconds: the verdict of the hard part, from a worker that can be killed."""


def conductor(parts: ConductorParts) -> ChecklistVerifier:
    """Has the hard items decided by the worker of these parts, and the soft ones graded by their judge."""
    return ChecklistVerifier(parts.service().verify, parts.judge)


class ChecklistVerifier:
    """Safe to use from several threads as far as the judge is."""

    name = HardVerifier.name
    version = HardVerifier.version

    def __init__(self, decide: Decide, judge: Judge | None = None) -> None:
        self._decide = decide
        self._judge = judge
        self._hard = HardVerifier()

    def check(self, spec: ChecklistSpec, *, prove: bool = False) -> None:
        """Raises SpecError, as `HardVerifier.check` does."""
        self._hard.check(spec, prove=prove)

    def close(self) -> None:
        """Nothing here is open."""

    def verify(self, spec: ChecklistSpec, submission: str, seconds: float) -> Verdict:
        """`seconds` are for the hard part; the judge is asked for texts that pass it, or earn credit by it, only."""
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
            reason = f"soft items: a mean grade of {mean:.2f}, asked: {spec.soft_needed:.2f}"
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
