"""Gate `integrity`: the evaluation is consistent and complete enough to be trusted."""

from __future__ import annotations

from pydantic import Field

from policies.contract.decision import GateFinding
from policies.contract.evidence import Evidence
from policies.contract.rules import Section
from policies.gates.gate import Gate, GateContext, GateFigure


class IntegrityRules(Section):
    max_infra_errors: float = Field(ge=0, le=50)
    """Largest share of answers lost to infrastructure errors, in percent."""


def judge(evidence: Evidence, rules: IntegrityRules, context: GateContext) -> GateFinding:
    """Fails if the evaluation contradicts itself; undecided if too many of its answers were lost, or it has none.

    The figure is the share of answers lost to infrastructure errors, in percent.
    """
    answers = [passed for item in evidence.items for passed in (item.champion_passed, item.candidate_passed)]
    lost = 100 * sum(passed is None for passed in answers) / len(answers) if answers else 100.0
    seen = GateFigure("integrity", lost, rules.max_infra_errors, "percent")
    if contradiction := _contradiction(evidence):
        advice = "find the cause, then evaluate both models again on one sealed set"
        return seen.failed(f"the evaluation contradicts itself: {contradiction}", advice)
    if not answers:
        return seen.undecided("the evaluation has no answers", "an evaluation with answers of both models")
    if lost > rules.max_infra_errors:
        reason = (
            f"{lost:.1f} % of the answers were lost to infrastructure errors, "
            f"more than the {rules.max_infra_errors:g} % allowed"
        )
        return seen.undecided(reason, "fix the infrastructure, then evaluate again")
    questions = len(evidence.items)
    return seen.passed(f"both models were asked the same {questions} sealed questions; {lost:.1f} % was lost")


def _contradiction(evidence: Evidence) -> str:
    """Describes an inconsistency that no honest evaluation has; empty if none."""
    tasks = [item.task for item in evidence.items]
    if evidence.candidate_asked != evidence.sealed_set:
        return "the candidate was not asked exactly the sealed questions"
    if evidence.champion_asked != evidence.sealed_set:
        return "the champion was not asked exactly the sealed questions"
    if len(set(tasks)) != len(tasks):
        return "a question counts more than once"
    if evidence.candidate_temperature != evidence.champion_temperature:
        return "the models were sampled at different temperatures"
    return ""


GATE = Gate(
    "integrity",
    IntegrityRules,
    judge,
    never_missing="without it the two models may have been asked different questions",
)
