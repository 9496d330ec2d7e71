"""DPPO (2602.04879, binary total variation): drops a token whose probability moved too far.

The bound is on p_trainer - p_sampler, not on their ratio: a rare token may become ten times as likely, a frequent one
may not lose a third. A token is dropped only where the advantage would push it further in that direction; the ratio is
unbounded. The recipe's clip is a difference of probabilities here: .2 on both sides, with an advantage not divided by
the spread, are prime-rl's defaults. Every token of a minibatch weighs the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from appliance.learning.objectives.objective import Objective, TokenLosses, all_tokens, centred, token_ratios

if TYPE_CHECKING:
    from torch import Tensor


def losses(
    logprobs: Tensor, sampled: Tensor, advantages: Tensor, mask: Tensor, clip: tuple[float, float]
) -> TokenLosses:
    low, high = clip
    moved = logprobs.detach().exp() - sampled.exp()
    held = ((advantages > 0) & (moved > high) | (advantages < 0) & (moved < -low)) & mask
    ratios = token_ratios(logprobs, sampled, mask)
    gain = (ratios * advantages).masked_fill(~mask | held, 0.0)
    return TokenLosses(-gain, ratios.detach().masked_fill(~mask, 0.0), held)


DPPO = Objective(clip=(0.20, 0.20), divisor=centred, losses=losses, denominator=all_tokens, anchor="sampler")
