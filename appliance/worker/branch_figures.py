"""Counts what branches did in a training step. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from appliance.learning.grouping import is_masked
from appliance.records.training import Group, Judged
from verifiers.contract.verdict import Outcome


def branch_figures(judged: Sequence[Judged], groups: Sequence[Group]) -> dict[str, float]:
    """Gives a step's metrics; nothing where nothing branched.

    `branches` (made), `branches_lost` (to infrastructure failures), `branches_kept` (trained on), `branch_points`
    (attempts that branched), `branch_points_parted` (of those, the ones whose rollouts earned different verdicts, from
    which alone a branch learns), `branch_tokens` (sampled for branches) and `branch_tokens_saved` (that they have from
    their attempts, and that were not drawn again).
    """
    branches = [one for one in judged if one.rollout.branch_of is not None]
    if not branches:
        return {}
    kept = {group.rollouts[index] for group in groups for index in group.kept}
    points: dict[str, set[Outcome]] = {one.rollout.branch_of or "": set() for one in branches}
    for one in judged:
        name = one.rollout.branch_of or one.rollout.id
        if name in points and not is_masked(one):
            points[name].add(one.verdict.outcome)
    return {
        "branches": float(len(branches)),
        "branches_lost": float(sum(map(is_masked, branches))),
        "branches_kept": float(sum(one.rollout.id in kept for one in branches)),
        "branch_points": float(len(points)),
        "branch_points_parted": float(sum(len(outcomes) > 1 for outcomes in points.values())),
        "branch_tokens": float(sum(one.rollout.sampled_tokens for one in branches)),
        "branch_tokens_saved": float(sum(one.rollout.shared_tokens for one in branches)),
    }
