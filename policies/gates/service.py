"""The gate that is asked of a candidate that was taken out of service."""

from __future__ import annotations

from policies.contract.decision import GateFinding
from policies.contract.evidence import Evidence, TakenBack
from policies.contract.rules import Section
from policies.gates.gate import Gate, GateContext, GateFigure


def judge(evidence: Evidence, rules: Section, context: GateContext) -> tuple[GateFinding, ...]:
    """Fails for one that was in service on this evaluation and was taken out; there is no finding about any other."""
    return (finding(evidence.taken_back),) if evidence.taken_back is not None else ()


def finding(taken_back: TakenBack) -> GateFinding:
    """Says that it was taken out, whatever was found before. The figure is the odds that it is worse; there is none
    where its jobs did not say so, but a person or its folder."""
    why = (
        "it was taken out of service since this one" if taken_back.figure is None else "its jobs speak against this one"
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
