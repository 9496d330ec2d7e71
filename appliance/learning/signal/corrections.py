"""Corrections for sampler and trainer that disagree, and the drift of a candidate from its base.

Invariants: a correction multiplies token losses by a number without gradient; the objective's denominator is unchanged.
The number is p_trainer / p_sampler, unless the objective's own ratio is to the sampler and already has it: it is
applied once. `truncate` caps it at 2 (truncated importance sampling, which the recipe refuses where nothing is
weighed); `mask` drops tokens with a ratio outside [.5, 5] (IcePop, 2510.18855); `reject` drops all tokens of a sample
whose ratios have a geometric mean outside the band, and so does not depend on its length (verl's rejection "geometric",
prime-rl's `geo_mask_low` and `geo_mask_high`). Without a rule all weights are 1.

With the anchor `trainer` the objective's ratio is to the trainer's own log-probabilities before the step. With one
update per step, which the recipe then requires, these are the current ones, and the ratio is 1.

Divergences are means over its sampled tokens given their context: r - 1 - log r with r the other model's probability
over its own (Schulman 2020, "k3"), unbiased and never negative. Entropy is the mean of -log p of the sampled tokens.
Nothing is trained and no random number is drawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from appliance.inference.engine import Engine
from appliance.learning.batches import Sample, sample_each
from appliance.learning.objectives.objective import Objective, TokenLosses, token_ratios, trained_lengths
from appliance.learning.recipes.recipe import MismatchRecipe
from appliance.records.rollouts import Rollout, RolloutEnd
from appliance.records.training import Judged
from policies.contract.evidence import DriftReport


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
    if recipe.rule in ("mask", "reject"):
        judged = ratios
        if recipe.rule == "reject":
            judged = (ratios.log().sum(1, keepdim=True) / trained_lengths(mask)).exp()
        out = ((judged < recipe.low) | (judged > recipe.high)) & mask
        return Correction((ones if counted else ratios).masked_fill(out, 0.0), none, out)
    return Correction(ones, none, none)


def mismatch_kl(trainer: Tensor, sampler: Tensor) -> Tensor:
    """Sums an estimate of KL(sampler || trainer) over sampled tokens [N]: r - 1 - log r with r = p_trainer / p_sampler,
    unbiased and never negative (Schulman 2020, "k3")."""
    difference = trainer - sampler
    return (torch.expm1(difference) - difference).sum()


def drift_of(
    candidate: Sequence[Judged], champion: Sequence[Judged], *, kl_champion: float, kl_base: float
) -> DriftReport:
    """Reports how far the candidate's answers drifted from the champion's on the same questions, with the candidate's
    divergences."""
    ours, theirs = _whole(candidate), _whole(champion)
    return DriftReport(
        tokens=sum(one.trained_tokens for one in _written(candidate)),
        kl_champion=kl_champion,
        kl_base=kl_base,
        entropy=_entropy(ours),
        entropy_champion=_entropy(theirs),
        length=_mean([rollout.sampled_tokens for rollout in ours]),
        length_champion=_mean([rollout.sampled_tokens for rollout in theirs]),
        calls=_mean([len(rollout.calls) for rollout in ours]),
        calls_champion=_mean([len(rollout.calls) for rollout in theirs]),
    )


def divergence(judged: Sequence[Judged], engine: Engine, temperature: float) -> float:
    """Returns the KL divergence between the model that sampled these rollouts and the engine's weights, in nats per
    token; 0 without tokens. Raises LearningError if a rollout lacks log-probabilities."""
    written = _written(judged)
    own: list[float] = []
    sampled: list[float] = []
    for one, scores in zip(written, engine.score([one.ids for one in written], temperature), strict=True):
        own += [score for score, mask in zip(scores, one.mask[1:], strict=True) if mask]
        sampled += [value for value, mask in zip(one.logprobs[1:], one.mask[1:], strict=True) if mask]
    return mismatch_kl(torch.tensor(own), torch.tensor(sampled)).item() / len(own) if own else 0.0


def _written(judged: Sequence[Judged]) -> list[Sample]:
    made = (one for rollout in _whole(judged) for one in sample_each(rollout, 0.0))
    return [one for one in made if one.trained_tokens]


def _whole(judged: Sequence[Judged]) -> list[Rollout]:
    """Returns the rollouts without infrastructure errors."""
    return [one.rollout for one in judged if one.rollout.ended is not RolloutEnd.INFRA_ERROR]


def _entropy(rollouts: Sequence[Rollout]) -> float:
    return -_mean([value for rollout in rollouts for node in rollout.nodes for value in node.logprobs if node.sampled])


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0
