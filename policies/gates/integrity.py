"""The gate that asks whether the evaluation can be believed."""

from __future__ import annotations

from pydantic import Field

from policies.contract.decision import GateFinding
from policies.contract.evidence import Evidence
from policies.contract.rules import Section
from policies.gates.gate import Gate, GateContext, GateFigure


class IntegrityRules(Section):
    max_infra_errors: float = Field(ge=0, le=50)
    """Percent."""


def judge(evidence: Evidence, rules: IntegrityRules, context: GateContext) -> GateFinding:
    """Fails for an evaluation that contradicts itself; undecided where too much of it was lost.

    The figure is the share of answers lost to broken infrastructure, in percent.
    """
    answers = [passed for item in evidence.items for passed in (item.champion_passed, item.candidate_passed)]
    lost = 100 * sum(passed is None for passed in answers) / len(answers) if answers else 100.0
    seen = GateFigure("integrity", lost, rules.max_infra_errors, "percent")
    if contradiction := _contradiction(evidence):
        advice = "find out how this came about, then evaluate both models again on one sealed set"
        return seen.failed(f"the evaluation contradicts itself: {contradiction}", advice)
    if not answers:
        return seen.undecided("the evaluation holds no answers", "an evaluation with answers of both models")
    if lost > rules.max_infra_errors:
        reason = (
            f"{lost:.1f} % of the answers were lost to broken infrastructure, "
            f"more than the {rules.max_infra_errors:g} % allowed"
        )
        return seen.undecided(reason, "repair what broke and evaluate again")
    questions = len(evidence.items)
    return seen.passed(f"both models were asked the same {questions} sealed questions; {lost:.1f} % was lost")


def _contradiction(evidence: Evidence) -> str:
    """What cannot be in an honest evaluation; empty when nothing was found."""
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
    "integrity", IntegrityRules, judge, never_missing="without it the two models may have been asked different things"
)
