"""REINFORCE with the length normalisation of SFR-DeepResearch (2509.06283).

The advantage (r - mean) / std is divided by the number of steps of its rollout, the same for each of them: a long
failure pushes as hard as a short one, not once for every step. The loss is -A * log p, without a ratio, so nothing is
clipped; the recipe's `mismatch` can weigh tokens by the ratio to the sampler. Ours: every token of a minibatch weighs
the same before that.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from appliance.learning.objectives.objective import (
    Graded,
    Objective,
    TokenLosses,
    all_tokens,
    standardised,
    token_ratios,
)

if TYPE_CHECKING:
    from torch import Tensor


def over_turns(kept: Sequence[Graded]) -> tuple[float, ...]:
    """Returns (r - mean) / std / turns. Raises ValueError as `centred`."""
    return tuple(one / max(1, each.turns) for one, each in zip(standardised(kept), kept, strict=True))


def losses(
    logprobs: Tensor, sampled: Tensor, advantages: Tensor, mask: Tensor, clip: tuple[float, float]
) -> TokenLosses:
    gain = advantages.masked_fill(~mask, 0.0) * logprobs.masked_fill(~mask, 0.0)
    ratios = token_ratios(logprobs.detach(), sampled, mask).masked_fill(~mask, 0.0)
    return TokenLosses(-gain, ratios, mask & False)


REINFORCE = Objective(clip=(1.0, 1.0), advantages=over_turns, losses=losses, denominator=all_tokens, anchor="none")
