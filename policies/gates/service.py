"""Gate `service`: the candidate was not taken out of service."""

from __future__ import annotations

from policies.contract.decision import GateFinding
from policies.contract.evidence import Evidence, TakenBack
from policies.contract.rules import Section
from policies.gates.gate import Gate, GateContext, GateFigure


def judge(evidence: Evidence, rules: Section, context: GateContext) -> tuple[GateFinding, ...]:
    """Fails for a candidate taken out of service since this evaluation; no finding otherwise."""
    return (finding(evidence.taken_back),) if evidence.taken_back is not None else ()


def finding(taken_back: TakenBack) -> GateFinding:
    """Returns the failed finding of a candidate taken out of service. The figure is the odds that it is worse, or None
    if a person or a damaged folder was the reason."""
    why = (
        "it was taken out of service since this evaluation"
        if taken_back.figure is None
        else "its jobs contradict this evaluation"
    )
    return GateFigure("service", taken_back.figure, taken_back.threshold, "to 1").failed(
        taken_back.reason, f"a new evaluation, and a decision on that: {why}"
    )


GATE = Gate(
    "service",
    Section,
    judge,
    never_missing="without it a model that was taken out of service could come back on the same evaluation",
    conditional=True,
)
