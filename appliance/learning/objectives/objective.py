"""An objective makes advantages of rewards, per-token losses of log-probabilities, and says what divides their sum.

The denominator is worked out over a whole minibatch, and a row's losses from that row alone: splitting a minibatch into
micro-batches changes nothing. A selector (RoC) is no objective: it chooses what comes here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class Graded:
    """Says what an objective needs to know of one kept rollout."""

    reward: float
    turns: int = 1
    """How often the policy model spoke: the steps of the rollout."""


@dataclass(frozen=True)
class TokenLosses:
    """Holds what a batch costs. All are [B, T-1], and 0 or False where the mask is off."""

    losses: Tensor
    """With gradient; their sum over the minibatch is divided by the denominator."""
    ratios: Tensor
    """Importance ratios, without gradient."""
    clipped: Tensor
    """Bool: tokens that a bound holds back: their gradient is 0, or in CISPO less than their ratio asks for."""


Anchor = Literal["sampler", "either", "none"]


@dataclass(frozen=True)
class Objective:
    clip: tuple[float, float]
    """How far the ratio may go below and above 1 where the recipe does not say; 1 below is no bound."""
    advantages: Callable[[Sequence[Graded]], tuple[float, ...]]
    """Of what is kept of a group. Raises ValueError when all rewards are equal: such a group should not come here."""
    losses: Callable[[Tensor, Tensor, Tensor, Tensor, tuple[float, float]], TokenLosses]
    """Of `logprobs` of the model in training (with gradient), `sampled` as recorded when the tokens were drawn,
    `advantages` per token, `mask` (bool, the policy model's own tokens), all [B, T-1], and the clip."""
    denominator: Callable[[Sequence[int], int], float]
    """Of a minibatch: trained tokens of each of its samples, and the most tokens that a conversation may have."""
    anchor: Anchor = "either"
    """What the ratio may be taken over: the sampler's log-probabilities alone, because its bound is about the distance
    from the sampler; those or the trainer's own of before the step; or there is no ratio."""


def centred(kept: Sequence[Graded]) -> tuple[float, ...]:
    """Returns r - mean. Raises ValueError when all rewards are equal; nothing in, nothing out."""
    if not kept:
        return ()
    if len({one.reward for one in kept}) == 1:
        raise ValueError("equal rewards have no advantages; the selector should have dropped the group")
    mean = math.fsum(one.reward for one in kept) / len(kept)
    return tuple(one.reward - mean for one in kept)


def standardised(kept: Sequence[Graded]) -> tuple[float, ...]:
    """Returns (r - mean) / std, with the population's std (GRPO, 2402.03300, section 4.1.2). Raises as `centred`."""
    differences = centred(kept)
    # Divided by the largest first: the square of a difference of 1e-200 would be 0.
    largest = max(map(abs, differences), default=1.0)
    scaled = [one / largest for one in differences]
    spread = math.sqrt(math.fsum(one**2 for one in scaled) / max(1, len(scaled)))
    return tuple(one / spread for one in scaled)


def token_ratios(logprobs: Tensor, sampled: Tensor, mask: Tensor) -> Tensor:
    """Returns p_trainer / p_sampler for each token, and exactly 1, without gradient, where the mask is off."""
    # Masked before exp: a recorded 0 against a real log-probability could overflow, and inf * 0 is NaN.
    return (logprobs - sampled).masked_fill(~mask, 0.0).exp()


def trained_lengths(mask: Tensor) -> Tensor:
    """Counts the trained tokens of each row: [B, 1], at least 1."""
    return mask.sum(1, keepdim=True).clamp(min=1)


def clipped_losses(ratios: Tensor, advantages: Tensor, mask: Tensor, clip: tuple[float, float]) -> TokenLosses:
    """Returns -min(ratio * A, clip(ratio) * A) for each token, with the ratio clipped to [1 - low, 1 + high]."""
    low, high = clip
    bounded = ratios.clamp(1.0 - low, 1.0 + high)
    gain = (ratios * advantages).minimum(bounded * advantages).masked_fill(~mask, 0.0)
    held = (bounded != ratios) & (bounded * advantages < ratios * advantages) & mask
    return TokenLosses(-gain, ratios.detach().masked_fill(~mask, 0.0), held)


def all_tokens(trained: Sequence[int], most: int) -> float:
    """Is the denominator under which every token of a minibatch weighs the same."""
    return sum(trained)


def all_answers(trained: Sequence[int], most: int) -> float:
    """Is the denominator of losses that each answer's length has divided already."""
    return len(trained)
