"""Corrects for a sampler that gave a token another probability than the trainer: two engines differ by rounding.

What always holds. A correction weighs the losses of tokens by a number without gradient; the objective's denominator
stays. The number is p_trainer / p_sampler, unless the objective's own ratio is taken over the log-probabilities of the
sampler and has it already: it is counted once. `truncate` cuts it off at 2 (truncated importance sampling, which the
recipe refuses where there is nothing to weigh); `mask` takes out the tokens whose ratio lies outside of [.5, 5]
(IcePop, 2510.18855). Without a rule nothing is weighed.

With the anchor `trainer` the objective's ratio is taken over the trainer's own log-probabilities of before the step.
With one update a step, which the recipe asks for then, these are the ones at hand, and the ratio is 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from appliance.learning.objectives.objective import Objective, TokenLosses, token_ratios
from appliance.learning.recipes.loss import MismatchRecipe


@dataclass(frozen=True)
class Correction:
    """All are [B, T-1]; weights are 1, and the others False, where the mask is off."""

    weights: Tensor
    """What the tokens' losses are multiplied by; without gradient."""
    corrected: Tensor
    """Bool: tokens whose weight was cut off at `most`."""
    masked: Tensor
    """Bool: tokens that were taken out."""


@dataclass(frozen=True)
class CorrectedLosses:
    tokens: TokenLosses
    """Of the objective, with the correction in their losses."""
    correction: Correction
    ratios: Tensor
    """[B, T-1]: p_trainer / p_sampler, without gradient; 0 where the mask is off."""


def corrected_losses(
    objective: Objective,
    logprobs: Tensor,
    sampled: Tensor,
    advantages: Tensor,
    mask: Tensor,
    clip: tuple[float, float],
    recipe: MismatchRecipe,
) -> CorrectedLosses:
    """Computes an objective's losses as the recipe anchors and corrects them; shapes are those of `Objective`."""
    anchor = logprobs.detach() if recipe.anchor == "trainer" else sampled
    made = objective.losses(logprobs, anchor, advantages, mask, clip)
    counted = recipe.anchor == "sampler" and objective.anchor != "none"
    correction = correct(logprobs, sampled, mask, recipe, counted)
    ratios = token_ratios(logprobs.detach(), sampled, mask).masked_fill(~mask, 0.0)
    tokens = TokenLosses(made.losses * correction.weights, made.ratios, made.clipped)
    return CorrectedLosses(tokens, correction, ratios)


def correct(logprobs: Tensor, sampled: Tensor, mask: Tensor, recipe: MismatchRecipe, counted: bool) -> Correction:
    """Weighs tokens by what trainer and sampler think of them: log-probabilities [B, T-1], mask bool [B, T-1].

    Where their ratio is `counted` by the objective already, it weighs nothing here.
    """
    ratios = token_ratios(logprobs.detach(), sampled, mask)
    ones, none = ratios.new_ones(ratios.shape), mask & False
    if recipe.rule == "truncate":
        return Correction(ratios.clamp(max=recipe.most), (ratios > recipe.most) & mask, none)
    if recipe.rule == "mask":
        out = ((ratios < recipe.low) | (ratios > recipe.high)) & mask
        return Correction((ones if counted else ratios).masked_fill(out, 0.0), none, out)
    return Correction(ones, none, none)


def mismatch_kl(trainer: Tensor, sampler: Tensor) -> Tensor:
    """Sums over tokens an estimate of KL(sampler || trainer), from the log-probabilities of sampled tokens [N].

    r - 1 - log r with r = p_trainer / p_sampler: without bias and never negative (Schulman 2020, "k3").
    """
    difference = trainer - sampler
    return (torch.expm1(difference) - difference).sum()
