"""Says what proposals earn, and what each is worth beside the others of its step.

Pure. `p` is the share of the solver's rollouts that passed. A refused proposal earns 0 whatever the switch. Solvers are
compared within one problem, by `appliance.learning.signal.grouping`; proposers across problems, here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence


def azr(p: float, _similarity: float) -> float:
    """1 - p where some solved it and some did not, else 0 (Absolute Zero 2505.03335, section 3.1)."""
    return 1.0 - p if 0.0 < p < 1.0 else 0.0


def variance(p: float, _similarity: float) -> float:
    """exp(-(p(1-p) - .25)^2 / .02): 1 where half solve it (SPICE 2510.24684)."""
    return math.exp(-((p * (1.0 - p) - 0.25) ** 2) / 0.02)


def nearer_end(p: float, similarity: float) -> float:
    """min(p, 1-p) less the similarity to what was proposed before, never below 0 (R-Zero 2508.05004)."""
    return max(0.0, min(p, 1.0 - p) - similarity)


def parabola(p: float, _similarity: float) -> float:
    """4p(1-p)."""
    return 4.0 * p * (1.0 - p)


REWARDS: Mapping[str, Callable[[float, float], float]] = {
    "azr": azr,
    "variance": variance,
    "min": nearer_end,
    "4p1p": parabola,
}


def reward(name: str, passed: int, judged: int, similarity: float = 0.0) -> float:
    """What a proposal earned whose task so many of the judged rollouts passed; 0 where none was judged.

    Raises ValueError for counts that cannot be, or a similarity outside of 0 to 1."""
    if not 0 <= passed <= judged or not 0.0 <= similarity <= 1.0:
        raise ValueError(f"{passed} of {judged} passed, similarity {similarity}: that cannot be")
    return REWARDS[name](passed / judged, similarity) if judged else 0.0


def advantages(rewards: Sequence[float]) -> list[float]:
    """(r - mean) / std over all proposals of a step, whatever problem each made; zeros where all earned the same."""
    if not rewards:
        return []
    mean = math.fsum(rewards) / len(rewards)
    spread = math.sqrt(math.fsum((one - mean) ** 2 for one in rewards) / len(rewards))
    return [(one - mean) / spread for one in rewards] if spread > 1e-9 else [0.0] * len(rewards)
