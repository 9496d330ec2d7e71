"""An objective makes advantages of rewards, per-token losses of log-probabilities, and says what divides their sum.

The denominator is worked out over a whole minibatch, and a row's losses from that row alone: splitting a minibatch into
micro-batches changes nothing. A selector (RoC) is no objective: it chooses what comes here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class TokenLosses:
    """Holds what a batch costs. All are [B, T-1], and 0 or False where the mask is off."""

    losses: Tensor
    """With gradient; their sum over the minibatch is divided by the denominator."""
    ratios: Tensor
    """Importance ratios, without gradient."""
    clipped: Tensor
    """Bool: tokens that the clip holds back (their gradient is 0)."""


@dataclass(frozen=True)
class Objective:
    clip: tuple[float, float]
    """How far the ratio may go below and above 1 where the recipe does not say."""
    advantages: Callable[[Sequence[float]], tuple[float, ...]]
    """Of a group's rewards. Raises ValueError when all are equal: the selector should have dropped such a group."""
    losses: Callable[[Tensor, Tensor, Tensor, Tensor, tuple[float, float]], TokenLosses]
    """Of `logprobs` of the model in training (with gradient), `sampled` as recorded when the tokens were drawn,
    `advantages` per token, `mask` (bool, the policy model's own tokens), all [B, T-1], and the clip."""
    denominator: Callable[[Sequence[int], int], float]
    """Of a minibatch: trained tokens of each of its samples, and the most tokens that a conversation may have."""


def centred(rewards: Sequence[float]) -> tuple[float, ...]:
    """Returns r - mean. Raises ValueError when all rewards are equal; nothing in, nothing out."""
    if not rewards:
        return ()
    if len(set(rewards)) == 1:
        raise ValueError("equal rewards have no advantages; the selector should have dropped the group")
    mean = math.fsum(rewards) / len(rewards)
    return tuple(reward - mean for reward in rewards)


def standardised(rewards: Sequence[float]) -> tuple[float, ...]:
    """Returns (r - mean) / std, with the population's std (GRPO, 2402.03300, section 4.1.2). Raises as `centred`."""
    differences = centred(rewards)
    spread = math.sqrt(math.fsum(one**2 for one in differences) / max(1, len(differences)))
    return tuple(one / spread for one in differences)


def clipped_losses(ratios: Tensor, advantages: Tensor, mask: Tensor, clip: tuple[float, float]) -> TokenLosses:
    """Returns -min(ratio * A, clip(ratio) * A) for each token, with the ratio clipped to [1 - low, 1 + high]."""
    low, high = clip
    bounded = ratios.clamp(1.0 - low, 1.0 + high)
    gain = (ratios * advantages).minimum(bounded * advantages).masked_fill(~mask, 0.0)
    held = (bounded != ratios) & (bounded * advantages < ratios * advantages) & mask
    return TokenLosses(-gain, ratios.detach().masked_fill(~mask, 0.0), held)
