"""DAPO (2503.14476, equation 8) is GRPO whose tokens weigh the same, with a clip that is wider above.

This is what 2508.20722, section 2.2, puts behind RoC. The paper takes the mean over the tokens of a question's answers;
here it is taken over the minibatch, as TRL does. Dynamic sampling is `refills` of the recipe. No KL term, no entropy
term, and no soft penalty on overlong answers: one that is cut off is a failure like any other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from appliance.learning.objectives.objective import (
    Objective,
    TokenLosses,
    all_tokens,
    clipped_losses,
    standardised,
    token_ratios,
)

if TYPE_CHECKING:
    from torch import Tensor


def losses(
    logprobs: Tensor, sampled: Tensor, advantages: Tensor, mask: Tensor, clip: tuple[float, float]
) -> TokenLosses:
    return clipped_losses(token_ratios(logprobs, sampled, mask), advantages, mask, clip)


DAPO = Objective(clip=(0.20, 0.28), divisor=standardised, losses=losses, denominator=all_tokens)
