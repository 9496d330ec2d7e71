"""Converts rollouts to padded tensors: training data exactly as sampled.

Token ids and log-probabilities come from the message graph and are never recomputed from text. Tensors are padded on
the right; with causal attention no real token sees padding, so there is no attention mask. Forced tokens after the last
sampled one (an unread result) are cut: nothing trained depends on them.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass, replace
from itertools import pairwise

import torch
from torch import Tensor

from appliance.inference.torch.decoder import padded
from appliance.inference.torch.routing import Routers
from appliance.learning.errors import LearningError
from appliance.records.rollouts import Message, Rollout, paths
from appliance.records.training import Group, Judged, SharedPrefix


@dataclass(frozen=True)
class Sample:
    """One sequence of training tokens. Raises LearningError unless its four tuples have equal length."""

    rollout: str
    ids: tuple[int, ...]
    mask: tuple[bool, ...]
    """True for tokens that the policy model sampled, except those of another sample, and those not to be learned."""
    logprobs: tuple[float, ...]
    """Log-probabilities as sampled; 0 where the mask is off."""
    advantages: tuple[float, ...]
    """Advantage per token; 0 where the mask is off."""
    share: float = 1.0
    """Share of the rollout's trained tokens in this sample."""
    routes: bytes = b""
    """Experts that a mixture chose for each token but the last, as `Turn.routes`; empty unless known for all."""

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
    """Returns a rollout's training samples: one for each path of its graph, so one more for each time its conversation
    was rewritten. Tokens of two paths are trained on in the first. With `prefix`, tokens before the branch point are
    trained on too, with their own advantage. Raises LearningError for an invalid graph, or a sampled token without a
    log-probability."""
    made: list[Sample] = []
    seen: set[int] = set()
    try:
        found = paths(rollout.nodes)
    except ValueError as error:
        raise LearningError(f"rollout {rollout.id}: {error}") from error
    for path in found:
        made.append(_sample(rollout, path, seen, advantage, prefix))
        seen.update(path)
    whole = max(1, sum(one.trained_tokens for one in made))
    return made if len(made) == 1 else [replace(one, share=one.trained_tokens / whole) for one in made]


def _sample(
    rollout: Rollout, path: Sequence[int], seen: Set[int], advantage: float, prefix: SharedPrefix | None
) -> Sample:
    """Builds the training sample of a path of a rollout's graph; the nodes `seen` are in another sample."""
    ids: list[int] = []
    mask: list[bool] = []
    logprobs: list[float] = []
    advantages: list[float] = []
    parting = (rollout.branch_at, rollout.branch_token) if prefix is None else (prefix.node, prefix.token)
    nodes = [rollout.nodes[index] for index in path]
    for index, node in zip(path, nodes, strict=True):
        if node.sampled and len(node.logprobs) != len(node.ids):
            raise LearningError(f"rollout {rollout.id}: {len(node.ids)} tokens, {len(node.logprobs)} log-probabilities")
        ids += node.ids
        learned = node.trains and index not in seen
        own = [learned and (index, token) >= parting for token in range(len(node.ids))]
        trained = own if prefix is None else [learned] * len(node.ids)
        mask += trained
        logprobs += [node.logprobs[token] if trains else 0.0 for token, trains in enumerate(trained)]
        before = 0.0 if prefix is None or not learned else prefix.advantage
        advantages += [advantage if its else before for its in own]
    end = max((i + 1 for i, trains in enumerate(mask) if trains), default=0)
    parts = (tuple(ids[:end]), tuple(mask[:end]), tuple(logprobs[:end]), tuple(advantages[:end]))
    return Sample(rollout.id, *parts, routes=_routes(nodes, end))


def _routes(nodes: Sequence[Message], end: int) -> bytes:
    """Returns the routes of a sample's first `end` tokens but the last; empty if a message before lacks some."""
    sampled = next((node for node in nodes if node.sampled and node.ids), None)
    each = 0 if sampled is None else len(sampled.routes) // len(sampled.ids)
    routes, tokens = b"", -1
    for node in nodes:
        if tokens + 1 >= end or not each:
            break
        routes, tokens = routes + node.routes, tokens + len(node.ids)
        if len(routes) != tokens * each:
            return b""
    return routes[: (end - 1) * each] if each else b""


def samples(judged: Sequence[Judged], groups: Sequence[Group]) -> list[Sample]:
    """Returns the training samples of the rollouts that the groups kept. They are ordered by rollout id, so equal
    records give equal batches. Omits samples without trained tokens. Raises LearningError if a kept rollout is not in
    `judged`."""
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
    """Splits training samples into batches of at most `size` with similar lengths, to minimise padding."""
    by_length = sorted(chosen, key=lambda one: (len(one.ids), one.rollout))
    bounds = [*range(0, len(by_length), size), len(by_length)]
    return [by_length[start:end] for start, end in pairwise(bounds)]


def collate(chosen: Sequence[Sample]) -> Batch:
    """Stacks training samples into one batch of tensors, padded on the right to the longest sample. At least one is
    required."""
    return Batch(
        ids=padded([one.ids for one in chosen]),
        mask=padded([one.mask for one in chosen], False),
        logprobs=padded([one.logprobs for one in chosen], 0.0),
        advantages=padded([one.advantages for one in chosen], 0.0),
        shares=torch.tensor([[one.share] for one in chosen]),
    )


def collate_routes(chosen: Sequence[Sample], routers: Routers) -> Tensor:
    """Stacks samples' routes as [B, T-1, layers, experts chosen], in int16; -1 for padding and for a sample without.
    Raises LearningError for routes of another model."""
    shape = (routers.layers, routers.chosen)
    routes = torch.full((len(chosen), max(len(one.ids) for one in chosen) - 1, *shape), -1, dtype=torch.int16)
    for place, one in enumerate(chosen):
        if not one.routes:
            continue
        rows = len(one.ids) - 1
        fault = f"{len(one.routes)} bytes for {rows} tokens, {shape[0]} layers and {shape[1]} experts"
        if len(one.routes) == rows * shape[0] * shape[1] * routers.dtype.itemsize:
            read = torch.frombuffer(bytearray(one.routes), dtype=routers.dtype).view(rows, *shape).short()
            order = read.sort(-1).values
            sound = 0 <= int(order.min()) <= int(order.max()) < routers.experts
            fault = "" if sound and bool((order.diff() > 0).all()) else "an expert is unknown, or chosen twice"
            routes[place, :rows] = read
        if fault:
            raise LearningError(
                f"the routes of {one.rollout} do not fit the model: {fault}",
                hint="train on rollouts that this model sampled",
            )
    return routes
