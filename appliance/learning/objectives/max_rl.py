"""MaxRL (2602.02710) goes up the logarithm of the success rate: a success counts for more where there are few.

The advantage is (r - mean) / mean of the kept rollouts; losses and denominator are those of `dapo`, as in its release.
With a selector in front, the mean is that of what the selector kept.
"""

from __future__ import annotations

from appliance.learning.objectives.dapo import losses
from appliance.learning.objectives.objective import Objective, all_tokens


def over_mean(mean: float, spread: float, turns: int) -> float:
    """Divides by the mean reward. Raises ValueError for one that is not above 0."""
    if mean <= 0:
        raise ValueError(f"max_rl divides by the mean reward, which is {mean}: rewards must not be negative")
    return mean


MAX_RL = Objective(clip=(0.20, 0.28), divisor=over_mean, losses=losses, denominator=all_tokens)
