"""Applies a policy to all recorded evaluations, shows the quarter's budget, and the gains and losses of each promotion.

Read-only: nothing is recorded, moved or put into force. Each evaluation is decided as on its own night, with its own
champion in service and with all statements that people made since; what would have followed from an earlier promotion
is not simulated.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from appliance.client.messages import Backtest, BacktestRow, BudgetView, CandidateEvidence
from appliance.client.nights import PromotionView, TasksetChange
from appliance.ledger.ledger import Ledger
from appliance.promotion.anchors import beside, paired
from appliance.promotion.evidence import budget_of, earlier_nights, evidence_of, taken_back
from appliance.records.evaluations import Evaluation
from policies.contract.decision import DecisionOutcome
from policies.contract.evidence import all_nights, first_answers, pairs
from policies.decide import decide
from policies.gates import evidence as evidence_gate
from policies.gates import improvement
from policies.gates.evidence import nights_to_go, odds
from policies.policy import Policy
from policies.statistics import log_odds, needed, quarter_of

MOST = 100_000
"""Maximum records of a kind: all there are."""


def backtest(ledger: Ledger, policy: Policy) -> Backtest:
    """Decides each recorded evaluation again under a policy; returns one row per evaluation, newest first. Nothing is
    recorded."""
    history = ledger.evaluations(limit=MOST)
    return Backtest(policy=policy.digest, rows=tuple(_row(one, history, ledger, policy) for one in history))


def _row(evaluation: Evaluation, history: Sequence[Evaluation], ledger: Ledger, policy: Policy) -> BacktestRow:
    candidate = evaluation.candidate.weights
    made = [one for one in ledger.decisions(candidate=candidate, limit=MOST) if one.evaluation == evaluation.id]
    evidence = evidence_of(
        evaluation,
        in_service=evaluation.champion.weights,
        history=history,
        approvals=ledger.approvals(candidate=candidate),
        decisions=made,
        policy=policy,
    )
    # An approval counts for any decision about this evaluation, since all rules here may be new.
    shown = tuple(one.digest() for one in made)
    evidence = evidence.model_copy(update={"shown": shown, "other_policies": (), "taken_back": None})
    last = made[0] if made else None
    now = decide(
        evidence,
        policy,
        policy_digest=policy.digest,
        id=f"{evaluation.id}.backtest",
        made_at=last.made_at if last else evaluation.created,
    )
    return BacktestRow(
        evaluation=evaluation.id,
        created=evaluation.created,
        candidate=candidate,
        champion=evaluation.champion.weights,
        recorded=last.outcome if last else None,
        recorded_under=last.policy if last else "",
        now=now,
    )


def budget(ledger: Ledger, policy: Policy, now: str) -> BudgetView:
    """Returns how many candidates the policy still admits this quarter, and each one's evidence, newest first."""
    history = ledger.evaluations(limit=MOST)
    quarter, rules = quarter_of(now), policy.rules_of(evidence_gate.GATE)
    newest: dict[tuple[str, str], Evaluation] = {}
    for one in history:
        models = (one.candidate.weights, one.champion.weights)
        if models[0] != models[1] and budget_of(one, history, policy).quarter == quarter:
            newest.setdefault(models, one)
    return BudgetView(
        quarter=quarter,
        alpha=rules.alpha,
        candidates=rules.candidates,
        left=max(0, rules.candidates - len(newest)),
        needed=odds(needed(rules.alpha, rules.candidates)),
        nights=rules.nights,
        evidence=tuple(_evidence_of(one, history, policy) for one in newest.values()),
    )


def _evidence_of(evaluation: Evaluation, history: Sequence[Evaluation], policy: Policy) -> CandidateEvidence:
    evidence = evidence_of(evaluation, in_service=None, history=history, approvals=(), decisions=(), policy=policy)
    seen, nights = pairs(all_nights(evidence)), len(evidence.earlier) + 1
    return CandidateEvidence(
        candidate=evaluation.candidate.weights,
        champion=evaluation.champion.weights,
        nights=nights,
        items=seen.items,
        gained=seen.gained,
        lost=seen.lost,
        odds=odds(log_odds(seen.gained, seen.lost)),
        nights_to_go=nights_to_go(seen, nights, policy.rules_of(improvement.GATE), policy.rules_of(evidence_gate.GATE)),
    )


LOOKED_AT = 10_000
"""Decisions searched for promotions."""


def promotions(ledger: Ledger, policy_of: Callable[[str], Policy], *, limit: int) -> list[PromotionView]:
    """Returns the models' promotions with gains and losses, newest first; a decision repeated with an approval counts
    once.

    `policy_of` returns the policy with a digest: nights and questions are those that the decision counted.
    """
    decisions = ledger.decisions(limit=LOOKED_AT)
    found: dict[str, PromotionView] = {}
    for made in decisions:
        if made.outcome is not DecisionOutcome.PROMOTE or made.evaluation in found or len(found) >= limit:
            continue
        evaluation = ledger.evaluation(made.evaluation)
        if evaluation is None:
            continue
        history = ledger.evaluations(candidate=made.candidate, limit=LOOKED_AT)
        met = [*earlier_nights(evaluation, history, policy_of(made.policy)), evaluation]
        back = taken_back(evaluation, [one for one in decisions if one.candidate == made.candidate])
        found[made.evaluation] = PromotionView(
            at=made.made_at,
            candidate=made.candidate,
            champion=evaluation.champion.weights,
            cycle=evaluation.cycle,
            evaluation=evaluation.id,
            reason=made.reason,
            taken_back=back.reason if back is not None else "",
            nights=len(met),
            families=changes(met),
        )
    return list(found.values())


def changes(met: Sequence[Evaluation]) -> tuple[TasksetChange, ...]:
    """Counts gained and lost questions by taskset, over the questions that both models answered in these evaluations,
    oldest first. A repeated question counts with its first answers, as in the decision."""
    both = first_answers(paired(one.champion.items, one.candidate.items) for one in met)
    items = Counter(item.family for item in both)
    gained = Counter(item.family for item in both if item.gained)
    lost = Counter(item.family for item in both if item.lost)
    return tuple(
        TasksetChange(
            family=family, items=items[family], gained=gained[family], lost=lost[family], **_to_anchor(family, met)
        )
        for family in sorted(items.keys() | met[-1].anchored.keys())
    )


def _to_anchor(family: str, met: Sequence[Evaluation]) -> dict[str, Any]:
    """Counts a taskset's questions gained and lost against its anchor, as of the last of these evaluations."""
    last = met[-1]
    anchor = last.anchored.get(family, "")
    seen = pairs(first_answers(beside(one, anchor, last.candidate.weights, family) for one in met))
    return {"anchor": anchor, "anchor_items": seen.items, "anchor_gained": seen.gained, "anchor_lost": seen.lost}
