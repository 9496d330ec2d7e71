"""What each promotion gained and what it forgot, by taskset: pure reading of the ledger."""

from __future__ import annotations

from collections import Counter

from appliance.client.nights import PromotionView, TasksetChange
from appliance.ledger.ledger import Ledger
from appliance.promotion import paired, taken_back
from appliance.records.evaluations import Evaluation
from policies.contract.decision import DecisionOutcome

LOOKED_AT = 10_000
"""Decisions among which promotions are looked for."""


def promotions(ledger: Ledger, *, limit: int) -> list[PromotionView]:
    """Newest first. A decision that was made again with an approval is one promotion."""
    decisions = ledger.decisions(limit=LOOKED_AT)
    found: dict[str, PromotionView] = {}
    for made in decisions:
        if made.outcome is not DecisionOutcome.PROMOTE or made.evaluation in found or len(found) >= limit:
            continue
        evaluation = ledger.evaluation(made.evaluation)
        if evaluation is None:
            continue
        back = taken_back(evaluation, [one for one in decisions if one.candidate == made.candidate])
        found[made.evaluation] = PromotionView(
            at=made.made_at,
            candidate=made.candidate,
            champion=evaluation.champion.weights,
            cycle=evaluation.cycle,
            evaluation=evaluation.id,
            reason=made.reason,
            taken_back=back.reason if back is not None else "",
            families=changes(evaluation),
        )
    return list(found.values())


def changes(evaluation: Evaluation) -> tuple[TasksetChange, ...]:
    """By taskset, of the questions that both answered."""
    both = [item for item in paired(evaluation.champion.items, evaluation.candidate.items) if item.counts]
    items = Counter(item.family for item in both)
    gained = Counter(item.family for item in both if item.gained)
    lost = Counter(item.family for item in both if item.lost)
    return tuple(
        TasksetChange(family=family, items=count, gained=gained[family], lost=lost[family])
        for family, count in sorted(items.items())
    )
