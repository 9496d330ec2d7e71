"""DAPO (2503.14476, equation 8): GRPO with equal token weights and a wider upper clip.

2508.20722, section 2.2, uses this with RoC. The paper averages over the tokens of a question's answers; here the mean
is over the minibatch, as in TRL. Dynamic sampling is `refills` of the recipe. No KL term, entropy term or soft overlong
penalty: a truncated answer is an ordinary failure.
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
