"""From findings to a decision, by the policy's ordered rules: the first that fits decides, and where none fits the
candidate is held. Nothing is promoted unless every gate that the policy asks for was asked and passed.

    promote      all gates passed
    hold         something is not shown yet: more questions, fresher evidence, a person's word
    reject       something is shown to be wrong with the candidate, or a person said no
    quarantine   nothing may build on it before a person has looked

Broken infrastructure holds and does not quarantine: it says nothing about the candidate, and another evaluation cures
it.
"""

from __future__ import annotations

from collections.abc import Sequence

from policies.decision import Decision, DecisionOutcome, Finding, GateOutcome
from policies.evidence import Evidence, TakenBack
from policies.gates import approval, freshness, integrity, non_regression
from policies.gates_conduct import contamination, cost, drift, egress, hacks, refusal, selftest
from policies.gates_gain import evidence_so_far, improvement
from policies.policy import Policy
from policies.rules import OutcomeRule, PromotionRules

ALWAYS = ("integrity", "freshness", "improvement", "evidence", "approval")
"""Gates that no policy can leave out, beside each family's non-regression."""

SERVICE = "service"
"""The gate that is asked only of a candidate that was taken out of service."""

FAMILY = "non_regression/"
FEW = 2
"""Families that a decision's sentence names one by one; each finding has its own words all the same."""


def decide(evidence: Evidence, policy: Policy, *, policy_digest: str, id: str, made_at: str) -> Decision:  # noqa: A002
    """The decision on this evidence under this policy. `made_at` is UTC in ISO 8601; raises ValueError if not."""
    findings = findings_on(evidence, policy.promotion, now=made_at)
    outcome = outcome_of(findings, policy.promotion)
    against = _against(outcome, findings)
    return Decision(
        id=id,
        candidate=evidence.candidate,
        champion=evidence.champion,
        evaluation=evidence.evaluation,
        policy=policy_digest,
        outcome=outcome,
        findings=findings,
        reason=_reason(outcome, findings, against),
        would_change=_would_change(against),
        made_at=made_at,
    )


def findings_on(evidence: Evidence, rules: PromotionRules, *, now: str) -> tuple[Finding, ...]:
    """What every gate that the policy asks for says, in one order."""
    found = [integrity(evidence, rules.integrity), freshness(evidence, rules.integrity, now=now)]
    if rules.selftest.required:
        found.append(selftest(evidence, rules.selftest))
    if rules.contamination.required:
        found.append(contamination(evidence))
    found.append(improvement(evidence, rules.improvement))
    found.append(evidence_so_far(evidence, rules.improvement, rules.evidence))
    found += non_regression(evidence, rules.non_regression)
    if rules.hacks.required:
        found.append(hacks(evidence, rules.hacks))
    if rules.drift.required:
        found.append(drift(evidence, rules.drift))
    if rules.probes.egress:
        found.append(egress(evidence))
    if rules.probes.refusal:
        found.append(refusal(evidence, rules.probes))
    if rules.cost.required:
        found.append(cost(evidence, rules.cost))
    if evidence.taken_back is not None:
        found.append(service(evidence.taken_back))
    found.append(approval(evidence, rules.approval, now=now))
    return tuple(found)


def service(taken_back: TakenBack) -> Finding:
    """That it was taken out of service: failed, whatever was found before. The figure is the odds that it is worse."""
    return Finding(
        gate=SERVICE,
        outcome=GateOutcome.FAILED,
        figure=taken_back.figure,
        threshold=taken_back.threshold,
        unit="to 1",
        reason=taken_back.reason,
        would_change="a new evaluation, and a decision on that: what it did in service speaks against the old one",
    )


def after_service(decision: Decision, taken_back: TakenBack, policy: Policy, *, id: str) -> Decision:  # noqa: A002
    """What follows for a candidate that got into service by this decision and was taken out of it: the gates' findings
    as they were, and that of its service, under the policy's rules."""
    kept = [finding for finding in decision.findings if finding.gate != SERVICE]
    findings = (*kept, service(taken_back))
    outcome = outcome_of(findings, policy.promotion)
    against = _against(outcome, findings)
    return decision.model_copy(
        update={
            "id": id,
            "policy": policy.digest,
            "outcome": outcome,
            "findings": findings,
            "reason": _reason(outcome, findings, against),
            "would_change": _would_change(against),
            "made_at": taken_back.at,
        }
    )


def asked_for(rules: PromotionRules) -> frozenset[str]:
    """The gates that this policy asks for; of non-regression, `non_regression` for all families."""
    switched = {
        "selftest": rules.selftest.required,
        "contamination": rules.contamination.required,
        "hacks": rules.hacks.required,
        "drift": rules.drift.required,
        "egress": rules.probes.egress,
        "refusal": rules.probes.refusal,
        "cost": rules.cost.required,
    }
    return frozenset([*ALWAYS, "non_regression", *(gate for gate, on in switched.items() if on)])


def outcome_of(findings: Sequence[Finding], rules: PromotionRules) -> DecisionOutcome:
    """What the first rule that fits says; hold where none fits, and hold unless the findings are complete."""
    rule = rule_that_fits(findings, rules)
    if rule is None:
        return DecisionOutcome.HOLD
    outcome = DecisionOutcome(rule.then)
    if outcome is DecisionOutcome.PROMOTE and not {_gate(one) for one in findings} >= asked_for(rules):
        return DecisionOutcome.HOLD
    return outcome


def rule_that_fits(findings: Sequence[Finding], rules: PromotionRules) -> OutcomeRule | None:
    """The first rule that fits the findings."""
    return next((rule for rule in rules.rules if _fits(rule, findings)), None)


def _fits(rule: OutcomeRule, findings: Sequence[Finding]) -> bool:
    outcomes = [one.outcome.value for one in findings if rule.when in ("any", "all", _gate(one))]
    if rule.when == "all":
        return bool(outcomes) and all(outcome == rule.is_ for outcome in outcomes)
    return rule.is_ in outcomes


def _gate(finding: Finding) -> str:
    return finding.gate.split("/")[0]


def _against(outcome: DecisionOutcome, findings: Sequence[Finding]) -> list[Finding]:
    """The findings that stand in the way: those that failed, or when none did, those that are undecided."""
    if outcome is DecisionOutcome.PROMOTE:
        return []
    failed = [finding for finding in findings if finding.outcome is GateOutcome.FAILED]
    return failed or [finding for finding in findings if finding.outcome is GateOutcome.UNDECIDED]


def _reason(outcome: DecisionOutcome, findings: Sequence[Finding], against: Sequence[Finding]) -> str:
    if outcome is DecisionOutcome.PROMOTE:
        return f"all {len(findings)} gates passed"
    if not against and {one.outcome for one in findings} == {GateOutcome.PASSED}:
        return "every gate passed, and no rule of the policy promotes, or a gate was not asked"
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
