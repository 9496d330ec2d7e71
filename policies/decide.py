"""From findings to a decision. Nothing is promoted unless every gate was asked and every gate passed.

    promote      all gates passed
    hold         something is not shown yet: more questions, fresher evidence, a person's word
    reject       something is shown to be wrong with the candidate, or a person said no
    quarantine   the evaluation contradicts itself: nothing may build on it before a person has looked

Broken infrastructure holds and does not quarantine: it says nothing about the candidate, and another evaluation cures
it. A person's rejection stands above a quarantine, as that person has looked.
"""

from __future__ import annotations

from collections.abc import Sequence

from policies.decision import Decision, DecisionOutcome, Finding, GateOutcome
from policies.evidence import Evidence
from policies.gates import approval, freshness, improvement, integrity, non_regression
from policies.policy import Policy

REQUIRED = ("integrity", "freshness", "improvement", "approval")
"""Gates that must be among the findings, beside at least one family's non-regression."""

FAMILY = "non_regression/"
FEW = 2
"""Families that a decision's sentence names one by one; each finding has its own words all the same."""


def decide(evidence: Evidence, policy: Policy, *, policy_digest: str, id: str, made_at: str) -> Decision:  # noqa: A002
    """The decision on this evidence under this policy. `made_at` is UTC in ISO 8601; raises ValueError if not."""
    findings = (
        integrity(evidence, policy.integrity),
        freshness(evidence, policy.integrity, now=made_at),
        improvement(evidence, policy.improvement),
        *non_regression(evidence, policy.non_regression),
        approval(evidence, policy.approval),
    )
    outcome = outcome_of(findings)
    return Decision(
        id=id,
        candidate=evidence.candidate,
        champion=evidence.champion,
        evaluation=evidence.evaluation,
        policy=policy_digest,
        outcome=outcome,
        findings=findings,
        reason=_reason(outcome, findings),
        would_change=_would_change(_against(outcome, findings)),
        made_at=made_at,
    )


def outcome_of(findings: Sequence[Finding]) -> DecisionOutcome:
    """What follows from the findings. Hold unless they are complete and say otherwise."""
    failed = {finding.gate for finding in findings if finding.outcome is GateOutcome.FAILED}
    if "approval" in failed:
        return DecisionOutcome.REJECT
    if "integrity" in failed:
        return DecisionOutcome.QUARANTINE
    if failed:
        return DecisionOutcome.REJECT
    asked = {finding.gate for finding in findings}
    complete = asked.issuperset(REQUIRED) and any(gate.startswith("non_regression/") for gate in asked)
    if complete and all(finding.outcome is GateOutcome.PASSED for finding in findings):
        return DecisionOutcome.PROMOTE
    return DecisionOutcome.HOLD


def _against(outcome: DecisionOutcome, findings: Sequence[Finding]) -> list[Finding]:
    """The findings that stand in the way: those that failed, or when none did, those that are undecided."""
    if outcome is DecisionOutcome.PROMOTE:
        return []
    failed = [finding for finding in findings if finding.outcome is GateOutcome.FAILED]
    return failed or [finding for finding in findings if finding.outcome is GateOutcome.UNDECIDED]


def _reason(outcome: DecisionOutcome, findings: Sequence[Finding]) -> str:
    if outcome is DecisionOutcome.PROMOTE:
        return f"all {len(findings)} gates passed"
    against = _against(outcome, findings)
    if not against:
        return "not every gate was asked"
    families = [finding for finding in against if finding.gate.startswith(FAMILY)]
    parts = [f"{finding.gate}: {finding.reason}" for finding in against if finding not in families]
    if len(families) > FEW:
        names = ", ".join(finding.gate.removeprefix(FAMILY) for finding in families)
        parts.append(f"non_regression: {families[0].outcome.value} for {len(families)} families ({names})")
    else:
        parts += [f"{finding.gate}: {finding.reason}" for finding in families]
    return "; ".join(parts)


def _would_change(against: Sequence[Finding]) -> str:
    families = [finding for finding in against if finding.gate.startswith(FAMILY)]
    parts = [finding.would_change for finding in against if finding not in families]
    if len(families) > FEW:
        parts.append(f"{families[0].would_change}, and likewise for {len(families) - 1} other families")
    else:
        parts += [finding.would_change for finding in families]
    return "; ".join(parts)
