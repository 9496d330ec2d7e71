"""The objective seam, and GRPO with a token-level loss.

An objective turns log-probabilities and advantages into a *sum* over tokens; the caller divides by the number of tokens
of the whole (mini)batch, so that splitting it into micro-batches changes nothing. RoC is no objective: it chooses what
comes here.

GRPO here is as in 2508.20722, section 2.2: ratio clipped to [1 - low, 1 + high] with high > low (clip-higher) and every
token of the batch weighing the same (both from DAPO, 2503.14476); no KL term, no entropy term; prompts and tool results
are masked.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor


@dataclass(frozen=True)
class TokenLoss:
    """Sums over the masked tokens of one micro-batch."""

    loss: Tensor
    """Scalar with gradient; not yet divided by the number of tokens."""
    ratio: Tensor
    """Scalar: sum of the importance ratios."""
    clipped: Tensor
    """Scalar: how many tokens the clip holds back (their gradient is 0)."""


class Objective(Protocol):
    name: str

    def __call__(self, logprobs: Tensor, sampled: Tensor, advantages: Tensor, mask: Tensor) -> TokenLoss:
        """The loss of one micro-batch.

        `logprobs` [B, T-1] of the model in training, with gradient; `sampled` [B, T-1] as recorded when the tokens were
        drawn; `advantages` [B, T-1], per token; `mask` [B, T-1] bool, True for the policy model's own tokens.
        """
        ...


class Grpo:
    """-min(ratio * A, clip(ratio) * A), summed over tokens."""

    name = "grpo"

    def __init__(self, clip_low: float, clip_high: float) -> None:
        self._low = 1.0 - clip_low
        self._high = 1.0 + clip_high

    def __call__(self, logprobs: Tensor, sampled: Tensor, advantages: Tensor, mask: Tensor) -> TokenLoss:
        # Masked before exp: a recorded 0 against a real log-probability could overflow, and inf * 0 is NaN.
        ratio = torch.exp((logprobs - sampled).masked_fill(~mask, 0.0))
        bounded = ratio.clamp(self._low, self._high)
        gain = torch.minimum(ratio * advantages, bounded * advantages).masked_fill(~mask, 0.0)
        held = ((bounded != ratio) & (bounded * advantages < ratio * advantages) & mask).sum()
        return TokenLoss(-gain.sum(), ratio.detach()[mask].sum(), held)
