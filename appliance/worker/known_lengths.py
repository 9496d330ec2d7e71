"""How long the conversations of training got, as the ledger has them: what a worker's engines expect before they have
seen any themselves. A pure function of the ledger; tokens that were pruned say nothing."""

from __future__ import annotations

from appliance.ledger.ledger import Ledger
from appliance.records.rollouts import Purpose, RolloutEnd
from appliance.records.training import RolloutFilter

NEWEST, PAGE = 128, 16
"""Rollouts that are read, and at once: each may have a number or two for tens of thousands of tokens."""


def known_lengths(ledger: Ledger) -> list[int]:
    """Tokens of each conversation of the newest rollouts of training, the newest first; one that was written anew in
    the middle is two."""
    found: list[int] = []
    last: str | None = None
    for _ in range(NEWEST // PAGE):
        page = ledger.rollouts(RolloutFilter(purpose=Purpose.TRAIN, before=last), limit=PAGE)
        whole = (one.rollout for one in page if one.rollout.ended is not RolloutEnd.INFRA_ERROR)
        found += [sum(len(node.ids) for node in sample) for rollout in whole for sample in rollout.samples]
        if len(page) < PAGE:
            break
        last = page[-1].rollout.id
    return [tokens for tokens in found if tokens]
