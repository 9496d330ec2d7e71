"""REINFORCE with the length normalisation of SFR-DeepResearch (2509.06283).

The advantage (r - mean) / std is divided by the rollout's number of steps, so a long failure pushes as hard as a short
one. The loss is -A * log p, without a ratio or clipping; the recipe's `mismatch` can weigh tokens by the ratio to the
sampler. Ours: before that, every token of a minibatch weighs the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from appliance.learning.objectives.objective import Objective, TokenLosses, all_tokens, token_ratios

if TYPE_CHECKING:
    from torch import Tensor


def over_turns(mean: float, spread: float, turns: int) -> float:
    """Returns the rewards' spread times the rollout's turns as divisor of its advantage."""
    return spread * max(1, turns)


def losses(
    logprobs: Tensor, sampled: Tensor, advantages: Tensor, mask: Tensor, clip: tuple[float, float]
) -> TokenLosses:
    gain = advantages.masked_fill(~mask, 0.0) * logprobs.masked_fill(~mask, 0.0)
    ratios = token_ratios(logprobs.detach(), sampled, mask).masked_fill(~mask, 0.0)
    return TokenLosses(-gain, ratios, mask & False)


REINFORCE = Objective(clip=(1.0, 1.0), divisor=over_turns, losses=losses, denominator=all_tokens, anchor="none")
