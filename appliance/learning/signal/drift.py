"""Measures a candidate's drift from earlier models, on its own rollouts.

Divergences are means over its sampled tokens given their context: r - 1 - log r with r the other model's probability
over its own (Schulman 2020, "k3"), unbiased and never negative. Entropy is the mean of -log p of the sampled tokens.
Nothing is trained and no random number is drawn.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from appliance.inference.engine import Engine
from appliance.learning.batches import Sample, sample_each
from appliance.learning.signal.corrections import mismatch_kl
from appliance.records.rollouts import Rollout, RolloutEnd
from appliance.records.training import Judged
from policies.contract.evidence import DriftReport


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
