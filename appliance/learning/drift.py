"""How far a candidate went from the models before it, measured on what it wrote itself.

The divergences are means over its own sampled tokens, given what stood before them: r - 1 - log r with r the other
model's probability over its own (Schulman 2020, "k3"), without bias and never negative. Entropy is the mean of -log p
of the sampled tokens. Nothing is trained here and no random number is drawn.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn

from appliance.learning.batches import Sample, collate, micro_batches, sample
from appliance.learning.scoring import score
from appliance.learning.trainer import mismatch_kl
from appliance.records import Ended, Judged, Rollout
from policies.evidence import DriftReport

MICRO_BATCH = 128


def drift_of(
    candidate: Sequence[Judged],
    champion: Sequence[Judged],
    *,
    champion_model: nn.Module,
    base_model: nn.Module | None,
    temperature: float,
) -> DriftReport:
    """From both models' sampled answers to the same questions. `base_model` is None where it is the champion.

    Raises LearningError when a rollout lacks its log-probabilities.
    """
    ours, theirs = _whole(candidate), _whole(champion)
    written = [one for one in (sample(rollout, 0.0) for rollout in ours) if one.trained_tokens]
    kl = divergence(written, champion_model, temperature)
    return DriftReport(
        tokens=sum(one.trained_tokens for one in written),
        kl_champion=kl,
        kl_base=kl if base_model is None else divergence(written, base_model, temperature),
        entropy=_entropy(ours),
        entropy_champion=_entropy(theirs),
        length=_mean([_own_tokens(rollout) for rollout in ours]),
        length_champion=_mean([_own_tokens(rollout) for rollout in theirs]),
        calls=_mean([len(rollout.calls) for rollout in ours]),
        calls_champion=_mean([len(rollout.calls) for rollout in theirs]),
    )


def divergence(written: Sequence[Sample], model: nn.Module, temperature: float) -> float:
    """Nats a token, of whoever sampled `written` from `model`; 0 without a token."""
    device = next(model.parameters()).device
    total, tokens = 0.0, 0
    model.eval()
    with torch.no_grad():
        for micro in micro_batches(written, MICRO_BATCH):
            batch = collate(micro).to(device)
            mask = batch.mask[:, 1:]
            scores = score(model, batch.ids, batch.mask, temperature)
            total += mismatch_kl(scores.logprobs[mask], batch.logprobs[:, 1:][mask]).item()
            tokens += int(mask.sum())
    return total / tokens if tokens else 0.0


def _whole(judged: Sequence[Judged]) -> list[Rollout]:
    """Without those that broken infrastructure cut short."""
    return [one.rollout for one in judged if one.rollout.ended is not Ended.INFRA_ERROR]


def _entropy(rollouts: Sequence[Rollout]) -> float:
    return -_mean([value for rollout in rollouts for node in rollout.nodes for value in node.logprobs if node.sampled])


def _own_tokens(rollout: Rollout) -> int:
    return sum(len(node.ids) for node in rollout.nodes if node.sampled)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0
