"""Corrects for tokens to which sampler and trainer give different probabilities, by rounding in two engines.

Invariants: a correction multiplies token losses by a number without gradient; the objective's denominator is unchanged.
The number is p_trainer / p_sampler, unless the objective's own ratio is to the sampler and already has it: it is
applied once. `truncate` caps it at 2 (truncated importance sampling, which the recipe refuses where nothing is
weighed); `mask` drops tokens with a ratio outside [.5, 5] (IcePop, 2510.18855). Without a rule all weights are 1.

With the anchor `trainer` the objective's ratio is to the trainer's own log-probabilities before the step. With one
update per step, which the recipe then requires, these are the current ones, and the ratio is 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from appliance.learning.objectives.objective import Objective, TokenLosses, token_ratios
from appliance.learning.recipes.loss import MismatchRecipe


@dataclass(frozen=True)
class Correction:
    """Token weights that correct a batch for the sampler-trainer mismatch, all [B, T-1]; weights are 1, other fields
    False, where the mask is off."""

    weights: Tensor
    """Factors on the token losses; without gradient."""
    corrected: Tensor
    """Bool: tokens whose weight was capped at `most`."""
    masked: Tensor
    """Bool: dropped tokens."""


@dataclass(frozen=True)
class CorrectedLosses:
    tokens: TokenLosses
    """The objective's losses, corrected."""
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
    """Computes an objective's token losses with the recipe's anchor and its correction for the sampler-trainer
    mismatch; shapes as in `Objective`."""
    anchor = logprobs.detach() if recipe.anchor == "trainer" else sampled
    made = objective.losses(logprobs, anchor, advantages, mask, clip)
    counted = recipe.anchor == "sampler" and objective.anchor != "none"
    correction = correct(logprobs, sampled, mask, recipe, counted)
    ratios = token_ratios(logprobs.detach(), sampled, mask).masked_fill(~mask, 0.0)
    tokens = TokenLosses(made.losses * correction.weights, made.ratios, made.clipped)
    return CorrectedLosses(tokens, correction, ratios)


def correct(logprobs: Tensor, sampled: Tensor, mask: Tensor, recipe: MismatchRecipe, counted: bool) -> Correction:
    """Returns token weights that correct for the sampler-trainer mismatch, from both log-probabilities [B, T-1] under a
    bool mask [B, T-1]. A ratio already `counted` by the objective is not applied again."""
    ratios = token_ratios(logprobs.detach(), sampled, mask)
    ones, none = ratios.new_ones(ratios.shape), mask & False
    if recipe.rule == "truncate":
        return Correction(ratios.clamp(max=recipe.most), (ratios > recipe.most) & mask, none)
    if recipe.rule == "mask":
        out = ((ratios < recipe.low) | (ratios > recipe.high)) & mask
        return Correction((ones if counted else ratios).masked_fill(out, 0.0), none, out)
    return Correction(ones, none, none)


def mismatch_kl(trainer: Tensor, sampler: Tensor) -> Tensor:
    """Sums an estimate of KL(sampler || trainer) over sampled tokens [N]: r - 1 - log r with r = p_trainer / p_sampler,
    unbiased and never negative (Schulman 2020, "k3")."""
    difference = trainer - sampler
    return (torch.expm1(difference) - difference).sum()
