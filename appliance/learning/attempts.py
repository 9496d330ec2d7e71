"""Puts each rollout that branched off to the attempt that it left, and says what each part of such a tree earns.

What always holds. A rollout that met an infrastructure failure is in no tree: no value is a mean over it. The tokens
that the rollouts of a tree share are trained on once, with those of the attempt, or of its first branch where the
attempt itself was lost. Every sampled token of the rollouts in a tree is trained on exactly once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from appliance.learning.objectives.objective import Graded, Objective
from appliance.records.rollouts import Rollout
from appliance.records.training import SharedPrefix


@dataclass(frozen=True)
class Attempt:
    """Is an attempt with what branched off it."""

    rollouts: tuple[Rollout, ...]
    """The attempt itself first, where it is left."""
    places: tuple[int, ...]
    """Where each of them is in the group."""


def attempts_of(rollouts: Sequence[Rollout]) -> list[Attempt]:
    """Finds the attempts of a group, in the order of their first rollouts."""
    found: dict[str, list[int]] = {}
    for place, one in enumerate(rollouts):
        found.setdefault(one.branch_of or one.id, []).append(place)
    return [Attempt(tuple(rollouts[place] for place in places), tuple(places)) for places in found.values()]


def credited_attempts(
    attempts: Sequence[Attempt], rewards: Sequence[float], objective: Objective
) -> tuple[dict[int, float], tuple[SharedPrefix, ...]]:
    """Returns the advantage of each rollout by its place in the group, and those of what they share.

    `rewards` are those of the group; `Objective.credit` has the formula, and what it raises.
    """
    graded = [
        [Graded(rewards[place], one.turns) for place, one in zip(each.places, each.rollouts, strict=True)]
        for each in attempts
    ]
    advantages: dict[int, float] = {}
    shared: list[SharedPrefix] = []
    for each, credit in zip(attempts, objective.credit(graded), strict=True):
        advantages |= dict(zip(each.places, credit.leaves, strict=True))
        parting = next(((one.branch_at, one.branch_token) for one in each.rollouts if one.branch_of), None)
        if parting is not None:
            node, token = parting
            first, count = each.rollouts[0].id, len(each.rollouts)
            shared.append(SharedPrefix(rollout=first, node=node, token=token, leaves=count, advantage=credit.shared))
    return advantages, tuple(shared)
