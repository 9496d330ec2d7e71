"""Rewards of proposals, and their advantages within a step.

Pure. `p` is the share of the solver's rollouts that passed. A refused proposal earns 0 under every reward. Solvers are
compared within one problem, by `appliance.learning.signal.grouping`; proposers across problems, here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence


def azr(p: float, _similarity: float) -> float:
    """Returns the reward 1 - p if some rollouts solved the proposal and some did not, else 0. From Absolute Zero
    (2505.03335, section 3.1)."""
    return 1.0 - p if 0.0 < p < 1.0 else 0.0


def variance(p: float, _similarity: float) -> float:
    """Returns the reward exp(-(p(1-p) - .25)^2 / .02): 1 if half the rollouts solve the proposal (SPICE 2510.24684)."""
    return math.exp(-((p * (1.0 - p) - 0.25) ** 2) / 0.02)


def nearer_end(p: float, similarity: float) -> float:
    """Returns the reward min(p, 1-p) minus the similarity to earlier proposals, at least 0 (R-Zero 2508.05004)."""
    return max(0.0, min(p, 1.0 - p) - similarity)


def parabola(p: float, _similarity: float) -> float:
    """Returns the reward 4p(1-p): 1 if half of the rollouts solve the proposal."""
    return 4.0 * p * (1.0 - p)


REWARDS: Mapping[str, Callable[[float, float], float]] = {
    "azr": azr,
    "variance": variance,
    "min": nearer_end,
    "4p1p": parabola,
}


def reward(name: str, passed: int, judged: int, similarity: float = 0.0) -> float:
    """Returns the reward of a proposal, given the passes among its judged rollouts; 0 if none was judged.

    Raises ValueError for impossible counts, or a similarity outside 0 to 1.
    """
    if not 0 <= passed <= judged or not 0.0 <= similarity <= 1.0:
        raise ValueError(f"impossible counts or similarity ({passed} of {judged} passed, similarity {similarity})")
    return REWARDS[name](passed / judged, similarity) if judged else 0.0


def advantages(rewards: Sequence[float]) -> list[float]:
    """Returns (r - mean) / std for the reward r of each proposal of a step, across problems. Zeros if all are equal."""
    if not rewards:
        return []
    mean = math.fsum(rewards) / len(rewards)
    spread = math.sqrt(math.fsum((one - mean) ** 2 for one in rewards) / len(rewards))
    return [(one - mean) / spread for one in rewards] if spread > 1e-9 else [0.0] * len(rewards)
