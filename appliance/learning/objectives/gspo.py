"""GSPO (2507.18071) takes the ratio of the whole answer, ratio^(1 / length), and its clip holds a whole answer back.

The form with per-token advantages (GSPO-token, section 4.3): each token carries the sequence's ratio as a number and a
gradient of its own. With one advantage for all tokens of an answer, value and gradient are those of GSPO. Each answer
weighs the same: its tokens' losses are divided by its length, and their sum by the number of answers.
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
