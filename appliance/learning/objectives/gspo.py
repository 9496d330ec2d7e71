"""GSPO (2507.18071): clips whole answers by their ratio^(1 / length).

The form with per-token advantages (GSPO-token, section 4.3): each token has the sequence's ratio as value and its own
gradient. With one advantage per answer, value and gradient equal GSPO's. Each answer weighs the same: its tokens'
losses are divided by its length, and their sum by the number of answers.
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
    lengths = trained_lengths(mask)
    mean = (logprobs.detach() - sampled).masked_fill(~mask, 0.0).sum(1, keepdim=True) / lengths
    made = clipped_losses(mean.exp() * token_ratios(logprobs, logprobs.detach(), mask), advantages, mask, clip)
    return TokenLosses(made.losses / lengths, made.ratios, made.clipped)


GSPO = Objective(clip=(3e-4, 4e-4), divisor=standardised, losses=losses, denominator=all_answers, by_answer=True)
