"""GRPO (2402.03300, equation 3): each answer weighs the same, regardless of length.

A token's loss is divided by its answer's length, and their sum by the number of answers. The clip is symmetric. No KL
term. The token-level form, which most trainers now call GRPO, is `dapo`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from appliance.learning.objectives.objective import (
    Objective,
    TokenLosses,
    all_answers,
    clipped_losses,
    standardised,
    token_ratios,
    trained_lengths,
)

if TYPE_CHECKING:
    from torch import Tensor


def losses(
    logprobs: Tensor, sampled: Tensor, advantages: Tensor, mask: Tensor, clip: tuple[float, float]
) -> TokenLosses:
    made = clipped_losses(token_ratios(logprobs, sampled, mask), advantages, mask, clip)
    return TokenLosses(made.losses / trained_lengths(mask), made.ratios, made.clipped)


GRPO = Objective(clip=(0.20, 0.20), divisor=standardised, losses=losses, denominator=all_answers, by_answer=True)
