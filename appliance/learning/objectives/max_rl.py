"""MaxRL (2602.02710) goes up the logarithm of the success rate: a success counts for more where there are few.

The advantage is (r - mean) / mean of the kept rollouts; losses and denominator are those of `dapo`, as in its release.
With a selector in front, the mean is that of what the selector kept.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from appliance.learning.objectives.dapo import losses
from appliance.learning.objectives.objective import Graded, Objective, all_tokens, centred


def over_mean(kept: Sequence[Graded]) -> tuple[float, ...]:
    """Returns (r - mean) / mean. Raises ValueError as `centred`, and for a mean that is not above 0."""
    differences = centred(kept)
    mean = math.fsum(one.reward for one in kept) / max(1, len(kept))
    if differences and mean <= 0:
        raise ValueError(f"max_rl divides by the mean reward, which is {mean}: rewards must not be negative")
    return tuple(one / mean for one in differences)


MAX_RL = Objective(clip=(0.20, 0.28), advantages=over_mean, losses=losses, denominator=all_tokens)
