"""MaxRL (2602.02710): ascends the logarithm of the success rate, so rare successes count more.

The advantage is (r - mean) / mean of the kept rollouts; losses and denominator are those of `dapo`, as in its release.
After a selector, the mean is over the selected rollouts.
"""

from __future__ import annotations

from appliance.learning.objectives.dapo import losses
from appliance.learning.objectives.objective import Objective, all_tokens


def over_mean(mean: float, spread: float, turns: int) -> float:
    """Returns the mean reward as divisor of a group's advantages. Raises ValueError unless it is above 0."""
    if mean <= 0:
        raise ValueError(f"max_rl divides by the mean reward, which is {mean}: rewards must not be negative")
    return mean


MAX_RL = Objective(clip=(0.20, 0.28), divisor=over_mean, losses=losses, denominator=all_tokens)
