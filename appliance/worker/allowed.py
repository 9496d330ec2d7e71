"""What a night may train on: the policy's [data] rules, as the streams of tasks take them.

What always holds: it depends on the policy, the cycle and what earlier cycles have on record, so a cycle that is
resumed draws the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from appliance.ledger.ledger import Ledger
from appliance.worker.gather import trained_questions
from curriculum.registry import FAMILIES
from policies.data import shares_of
from policies.policy import Policy

BY_ID = "task "
"""How the keys of tasks begin; the others say what a question asks, whatever the words."""


@dataclass(frozen=True)
class Allowed:
    shares: Mapping[str, float]
    """Percent of a step that each family may be; the others are not trained on."""
    met: AbstractSet[str]
    """Keys of questions that recent nights trained on."""

    @property
    def without(self) -> frozenset[str]:
        """Families that are not trained on."""
        return frozenset(FAMILIES).difference(self.shares)


def allowed(policy: Policy, ledger: Ledger, cycle: str) -> Allowed:
    """The rules of this policy for that cycle."""
    nights = policy.data.fresh_nights
    return Allowed(shares=shares_of(policy.data, FAMILIES), met=_met(ledger, cycle, nights) if nights else frozenset())


def _met(ledger: Ledger, cycle: str, nights: int) -> frozenset[str]:
    """What the last so many cycles before this one that trained at all trained on."""
    known = [one.id for one in ledger.cycles(limit=100_000)]
    before = known[known.index(cycle) + 1 :] if cycle in known else known
    trained = (trained_questions(ledger, name) for name in before)
    found: set[str] = set()
    for keys in trained:
        if keys:
            found.update(key for key in keys if not key.startswith(BY_ID))
            nights -= 1
        if nights == 0:
            break
    return frozenset(found)
