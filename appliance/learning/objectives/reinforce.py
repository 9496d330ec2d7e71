"""REINFORCE with the length normalisation of SFR-DeepResearch (2509.06283).

The advantage (r - mean) / std is divided by the number of steps of its rollout, the same for each of them: a long
failure pushes as hard as a short one, not once for every step. The loss is -A * log p, without a ratio, so nothing is
clipped; the recipe's `mismatch` can weigh tokens by the ratio to the sampler. Ours: every token of a minibatch weighs
the same before that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from appliance.learning.objectives.objective import Objective, TokenLosses, all_tokens, token_ratios

if TYPE_CHECKING:
    from torch import Tensor


def over_turns(mean: float, spread: float, turns: int) -> float:
    """Divides by the spread and by the rollout's turns."""
    return spread * max(1, turns)


def losses(
    logprobs: Tensor, sampled: Tensor, advantages: Tensor, mask: Tensor, clip: tuple[float, float]
) -> TokenLosses:
    gain = advantages.masked_fill(~mask, 0.0) * logprobs.masked_fill(~mask, 0.0)
    ratios = token_ratios(logprobs.detach(), sampled, mask).masked_fill(~mask, 0.0)
    return TokenLosses(-gain, ratios, mask & False)


REINFORCE = Objective(clip=(1.0, 1.0), divisor=over_turns, losses=losses, denominator=all_tokens, anchor="none")
