"""Gains and losses of each promotion, by taskset. Read-only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from appliance.client.nights import PromotionView, TasksetChange
from appliance.ledger.ledger import Ledger
from appliance.promotion.evidence import earlier_nights, paired, taken_back
from appliance.records.evaluations import Evaluation
from policies.contract.decision import DecisionOutcome
from policies.contract.evidence import first_answers
from policies.policy import Policy

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
        TasksetChange(family=family, items=count, gained=gained[family], lost=lost[family])
        for family, count in sorted(items.items())
    )
