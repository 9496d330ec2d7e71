"""Turns gate findings into a decision by the policy's ordered rules.

The first matching rule decides; without a match the candidate is held. Nothing is promoted unless every requested gate
ran and passed.

    promote      all gates passed
    hold         something is not shown yet: more questions, fresher evidence, a person's approval
    reject       something is shown to be wrong with the candidate, or a person rejected it
    quarantine   nothing may build on it before a person has looked

Infrastructure errors hold and never quarantine: they say nothing about the candidate, and another evaluation resolves
them.

Decides if an earlier night may add to the evidence of a later one.

Invariants: a night that a gate blocked for its own decision adds nothing to later ones. Only gates about the evaluation
itself are asked, each on that night's evidence and as of its time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from policies.contract.decision import Decision, DecisionOutcome, GateFinding, GateOutcome
from policies.contract.evidence import Evidence, TakenBack
from policies.contract.rules import OutcomeRule, PromotionRules
from policies.gates import contamination, egress, hacks, integrity, selftest, service
from policies.gates.gate import AskedGates, Gate, GateContext, is_about
from policies.policy import Policy

BY_TASKSET = ("non_regression", "retention")
"""Gates with a finding for each taskset."""
FEW = 2
"""Largest number of tasksets that a decision's sentence names individually; each finding still has its own reason."""


def decide(evidence: Evidence, policy: Policy, *, policy_digest: str, id: str, made_at: str) -> Decision:  # noqa: A002
    """Judges a candidate by the policy's gates and rules; returns the promotion decision with every finding. `made_at`
    is UTC in ISO 8601; raises ValueError if not."""
    return Decision(
        id=id,
        candidate=evidence.candidate,
        champion=evidence.champion,
        evaluation=evidence.evaluation,
        policy=policy_digest,
        made_at=made_at,
        **_concluded(policy.gates.findings(evidence, now=made_at), policy),
    )


def after_service(decision: Decision, taken_back: TakenBack, policy: Policy, *, id: str) -> Decision:  # noqa: A002
    """Returns the new decision for a candidate that was taken out of service.

    Keeps the earlier gate findings, adds the service finding, and applies the policy's rules.
    """
    remaining = [finding for finding in decision.findings if finding.gate != service.GATE.name]
    update = {"id": id, "policy": policy.digest, "made_at": taken_back.at}
    return decision.model_copy(update=update | _concluded((*remaining, service.finding(taken_back)), policy))


def _concluded(findings: tuple[GateFinding, ...], policy: Policy) -> dict[str, Any]:
    """Returns the decision fields that follow from gate findings: outcome, reason, and what would change it."""
    outcome = outcome_of(findings, policy)
    against = _against(outcome, findings)
    return {
        "findings": findings,
        "outcome": outcome,
        "reason": _reason(outcome, findings, against),
        "would_change": _joined(
            against,
            lambda one: one.would_change,
            lambda families: f"{families[0].would_change}, and likewise for {len(families) - 1} other tasksets",
        ),
    }


def must_be_found(policy: Policy) -> frozenset[str]:
    """Returns the gates whose findings are required for promotion; `non_regression` covers all tasksets."""
    return frozenset(gate.name for gate in policy.gates.asked if not gate.conditional)


def outcome_of(findings: Sequence[GateFinding], policy: Policy) -> DecisionOutcome:
    """Returns the decision of the first promotion rule that matches; hold without a match, or instead of promoting
    without a required finding."""
    rule = rule_that_fits(findings, policy.promotion)
    if rule is None:
        return DecisionOutcome.HOLD
    outcome = DecisionOutcome(rule.then)
    missing = (gate for gate in must_be_found(policy) if not any(is_about(one, gate) for one in findings))
    if outcome is DecisionOutcome.PROMOTE and any(missing):
        return DecisionOutcome.HOLD
    return outcome


def rule_that_fits(findings: Sequence[GateFinding], rules: PromotionRules) -> OutcomeRule | None:
    """Returns the first promotion rule that matches the gate findings, or None."""
    return next((rule for rule in rules.rules if _fits(rule, findings)), None)


def _fits(rule: OutcomeRule, findings: Sequence[GateFinding]) -> bool:
    outcomes = [one.outcome.value for one in findings if rule.when in ("any", "all") or is_about(one, rule.when)]
    if rule.when == "all":
        return bool(outcomes) and all(outcome == rule.is_ for outcome in outcomes)
    return rule.is_ in outcomes


def _against(outcome: DecisionOutcome, findings: Sequence[GateFinding]) -> list[GateFinding]:
    """Returns the gate findings that block promotion, if it is blocked: the failed ones, or else the undecided ones."""
    if outcome is DecisionOutcome.PROMOTE:
        return []
    failed = [finding for finding in findings if finding.outcome is GateOutcome.FAILED]
    return failed or [finding for finding in findings if finding.outcome is GateOutcome.UNDECIDED]


def _reason(outcome: DecisionOutcome, findings: Sequence[GateFinding], against: Sequence[GateFinding]) -> str:
    if outcome is DecisionOutcome.PROMOTE:
        return f"all {len(findings)} gates passed"
    if not against and {one.outcome for one in findings} == {GateOutcome.PASSED}:
        return "every gate passed, but no rule of the policy promotes, or a gate did not run"
    if not against:
        return "not every gate ran"
    return _joined(
        against,
        lambda one: f"{one.gate}: {one.reason}",
        lambda families: (
            f"{families[0].gate.partition('/')[0]}: {families[0].outcome.value} for {len(families)} tasksets "
            f"({', '.join(one.gate.partition('/')[2] for one in families)})"
        ),
    )


def _joined(
    against: Sequence[GateFinding],
    of_one: Callable[[GateFinding], str],
    of_families: Callable[[Sequence[GateFinding]], str],
) -> str:
    """Joins a text for each gate finding with semicolons; many tasksets are summarized in one part at the end."""
    grouped = {name: [one for one in against if one.gate.startswith(f"{name}/")] for name in BY_TASKSET}
    parts = [of_one(finding) for finding in against if not any(finding in group for group in grouped.values())]
    for group in grouped.values():
        parts += [of_families(group)] if len(group) > FEW else map(of_one, group)
    return "; ".join(parts)


MUST_PASS: tuple[Gate[Any], ...] = (integrity.GATE, selftest.GATE)
"""Gates without which verdicts may be unreliable or missing."""
MUST_NOT_FAIL: tuple[Gate[Any], ...] = (contamination.GATE, hacks.GATE, egress.GATE)
"""Gates whose failure means that unsolved questions may have passed."""


def is_sound(night: Evidence, gates: AskedGates) -> bool:
    """True if an earlier night's evaluation is sound enough that its answers count in later decisions. `night` needs
    only its own measurements."""
    context = GateContext(gates, night.evaluated_at)
    for gate in (*MUST_PASS, *MUST_NOT_FAIL):
        section = gates.get(gate)
        if section is None:
            continue
        found = gate.judge(night, section, context)
        findings = found if isinstance(found, tuple) else (found,)
        outcomes = {one.outcome for one in findings}
        if GateOutcome.FAILED in outcomes or (gate in MUST_PASS and GateOutcome.UNDECIDED in outcomes):
            return False
    return True
