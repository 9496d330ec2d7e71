"""GRPO is taken with a token-level loss, as in 2508.20722, section 2.2.

Clip-higher, and every token of the minibatch weighs the same (both from DAPO, 2503.14476). No KL term, no entropy term.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from appliance.learning.objectives.objective import Objective, TokenLosses, clipped_losses, standardised

if TYPE_CHECKING:
    from torch import Tensor


def losses(
    logprobs: Tensor, sampled: Tensor, advantages: Tensor, mask: Tensor, clip: tuple[float, float]
) -> TokenLosses:
    # Masked before exp: a recorded 0 against a real log-probability could overflow, and inf * 0 is NaN.
    return clipped_losses((logprobs - sampled).masked_fill(~mask, 0.0).exp(), advantages, mask, clip)


GRPO = Objective(
    clip=(0.20, 0.28), advantages=standardised, losses=losses, denominator=lambda trained, most: sum(trained)
)
