"""CISPO (MiniMax-M1, 2506.13585): bounds a token's weight and always keeps its gradient.

The loss is -w * A * log p, with w the detached ratio to the sampler: at most 5 (2510.13786), without a lower bound. The
ratio must be to the sampler: over the trainer's own log-probabilities it is about 1, and the bound would never apply.
Every token of a minibatch weighs the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from appliance.learning.objectives.objective import Objective, TokenLosses, all_tokens, standardised, token_ratios

if TYPE_CHECKING:
    from torch import Tensor


def losses(
    logprobs: Tensor, sampled: Tensor, advantages: Tensor, mask: Tensor, clip: tuple[float, float]
) -> TokenLosses:
    low, high = clip
    ratios = token_ratios(logprobs.detach(), sampled, mask)
    weights = ratios.clamp(1.0 - low, 1.0 + high)
    gain = (weights * advantages).masked_fill(~mask, 0.0) * logprobs.masked_fill(~mask, 0.0)
    return TokenLosses(-gain, ratios.masked_fill(~mask, 0.0), (weights != ratios) & mask)


CISPO = Objective(clip=(1.0, 4.0), divisor=standardised, losses=losses, denominator=all_tokens, anchor="sampler")
