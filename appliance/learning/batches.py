"""Turns rollouts into padded tensors: what is trained on, exactly as it was sampled.

Token ids and log-probabilities come from the message graph and are never made again from text. Tensors are padded on
the right; with causal attention no real token sees padding, so there is no attention mask. Forced tokens after the last
sampled one (a result that nobody read) are cut: nothing that is trained on depends on them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import torch
from torch import Tensor

from appliance.inference.torch.decoder import padded
from appliance.learning.errors import LearningError
from appliance.records.rollouts import Message, Rollout
from appliance.records.training import Group, Judged, SharedPrefix


@dataclass(frozen=True)
class Sample:
    """Is one sequence of tokens to train on. Raises LearningError unless its four tuples are of equal length."""

    rollout: str
    ids: tuple[int, ...]
    mask: tuple[bool, ...]
    """True for the policy model's own tokens, but for those that a branch has from the rollout that it left."""
    logprobs: tuple[float, ...]
    """As sampled; 0 where the mask is off."""
    advantages: tuple[float, ...]
    """Of each token; 0 where the mask is off."""
    share: float = 1.0
    """Of its rollout's trained tokens; the rest is in that rollout's other samples."""

    def __post_init__(self) -> None:
        lengths = (len(self.ids), len(self.mask), len(self.logprobs), len(self.advantages))
        if len(set(lengths)) > 1:
            raise LearningError(
                f"a sample of {self.rollout} has {lengths} tokens, marks, log-probabilities and advantages"
            )

    @property
    def trained_tokens(self) -> int:
        return sum(self.mask)


@dataclass(frozen=True)
class Batch:
    ids: Tensor
    """[B, T], int64, padded with 0."""
    mask: Tensor
    """[B, T], bool."""
    logprobs: Tensor
    """[B, T], float32, as sampled."""
    advantages: Tensor
    """[B, T], float32."""
    shares: Tensor
    """[B, 1], float32."""

    def to(self, device: torch.device) -> Batch:
        parts = (self.ids, self.mask, self.logprobs, self.advantages, self.shares)
        return Batch(*(tensor.to(device) for tensor in parts))


def sample_each(rollout: Rollout, advantage: float, prefix: SharedPrefix | None = None) -> list[Sample]:
    """Makes the samples of a rollout: one, and one more for each time that its conversation was written anew.

    With `prefix` the tokens before the place where others part from it are trained on, too, with an advantage of their
    own. Raises LearningError when messages branch or a sampled token has no log-probability.
    """
    made, first = [], 0
    for nodes in rollout.samples:
        made.append(_sample(rollout, nodes, first, advantage, prefix))
        first += len(nodes)
    whole = max(1, sum(one.trained_tokens for one in made))
    return made if len(made) == 1 else [replace(one, share=one.trained_tokens / whole) for one in made]


def _sample(
    rollout: Rollout, nodes: Sequence[Message], first: int, advantage: float, prefix: SharedPrefix | None
) -> Sample:
    """Makes the sample of these nodes, the first of which has that index; none of another sample is before one."""
    ids: list[int] = []
    mask: list[bool] = []
    logprobs: list[float] = []
    advantages: list[float] = []
    parting = (rollout.branch_at, rollout.branch_token) if prefix is None else (prefix.node, prefix.token)
    for index, node in enumerate(nodes, start=first):
        if node.parent != (index - 1 if index > first else None):
            raise LearningError(f"rollout {rollout.id} branches at node {index}; one conversation was expected")
        if node.sampled and len(node.logprobs) != len(node.ids):
            raise LearningError(f"rollout {rollout.id}: {len(node.ids)} tokens, {len(node.logprobs)} log-probabilities")
        ids += node.ids
        own = [node.sampled and (index, token) >= parting for token in range(len(node.ids))]
        trained = own if prefix is None else [node.sampled] * len(node.ids)
        mask += trained
        logprobs += [node.logprobs[token] if trains else 0.0 for token, trains in enumerate(trained)]
        before = 0.0 if prefix is None or not node.sampled else prefix.advantage
        advantages += [advantage if its else before for its in own]
    end = max((i + 1 for i, trains in enumerate(mask) if trains), default=0)
    return Sample(rollout.id, tuple(ids[:end]), tuple(mask[:end]), tuple(logprobs[:end]), tuple(advantages[:end]))


def samples(judged: Sequence[Judged], groups: Sequence[Group]) -> list[Sample]:
    """Makes samples of what the groups kept, in the order of rollout ids: equal records give equal batches.

    Samples without a token of the rollout's own are left out. Raises LearningError when a kept rollout is not among
    `judged`.
    """
    rollouts = {one.rollout.id: one.rollout for one in judged}
    advantages = {
        group.rollouts[index]: advantage
        for group in groups
        for index, advantage in zip(group.kept, group.advantages, strict=True)
    }
    prefixes = {one.rollout: one for group in groups for one in group.shared}
    missing = sorted(advantages.keys() - rollouts.keys())
    if missing:
        raise LearningError(f"{len(missing)} kept rollouts have no record, the first is {missing[0]}")
    return [
        one
        for name in sorted(advantages)
        for one in sample_each(rollouts[name], advantages[name], prefixes.get(name))
        if one.trained_tokens
    ]


def micro_batches(chosen: Sequence[Sample], size: int) -> list[list[Sample]]:
    """Cuts into slices of at most `size` samples of similar length, so that little is padded."""
    by_length = sorted(chosen, key=lambda one: (len(one.ids), one.rollout))
    bounds = [*range(0, len(by_length), size), len(by_length)]
    return [by_length[start:end] for start, end in pairwise(bounds)]


def collate(chosen: Sequence[Sample]) -> Batch:
    """Pads on the right to the longest of `chosen`, of which there is at least one."""
    return Batch(
        ids=padded([one.ids for one in chosen]),
        mask=padded([one.mask for one in chosen], False),
        logprobs=padded([one.logprobs for one in chosen], 0.0),
        advantages=padded([one.advantages for one in chosen], 0.0),
        shares=torch.tensor([[one.share] for one in chosen]),
    )
