"""Gate `non_regression`: on each taskset the candidate is not worse than the champion by more than a margin."""

from __future__ import annotations

from policies.contract.decision import GateFinding
from policies.contract.evidence import Evidence, by_family
from policies.gates import evidence as evidence_gate
from policies.gates.gate import Gate, GateContext
from policies.gates.tasksets import NonRegressionRules, TasksetJudge


def judge(evidence: Evidence, rules: NonRegressionRules, context: GateContext) -> tuple[GateFinding, ...]:
    """Returns one finding for each taskset of any night of the two models; a taskset fails if it got worse. The figure
    is the taskset's gain in points over all nights, so gains in others cannot make up for it."""
    asked = by_family([*(night.items for night in evidence.earlier), evidence.items])
    nights = context.gates[evidence_gate.GATE].nights
    return TasksetJudge(GATE.name, rules, rules.alpha, evidence.rows, nights, {}).findings(asked)


GATE = Gate(
    "non_regression",
    NonRegressionRules,
    judge,
    never_missing="without it a gain in one family could pay for a loss in another",
)
