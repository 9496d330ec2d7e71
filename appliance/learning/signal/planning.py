"""Finds the tokens of a rollout that plan, and gives them more of its credit: HICRA (2509.03646).

A strategic gram is a run of 3 to 5 tokens that correct solutions share. What always holds. Grams come from the correct
solutions of the step alone, and from what the policy model sampled: the result of a tool is nobody's plan. Nothing is
drawn but from the generator that the caller brings, and the work is bounded: `MOST_TOKENS` are read and `MOST_GRAMS`
compared, however long the rollouts are.

As in the paper, grams are clustered by meaning, and those of the fifth of clusters that occur in most solutions are
strategic. Ours: a gram's meaning is the mean of the model's own input embeddings of its tokens, where the paper has a
sentence encoder over words; a gram joins the first cluster whose leader is near enough, and one that occurs in a single
solution joins none. Semantic entropy is the Shannon entropy of how often each strategic gram occurs.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from random import Random

import torch
from torch import Tensor

from appliance.learning.batches import Sample
from appliance.records.rollouts import Rollout

SIZES = (3, 4, 5)
"""Tokens of a gram."""

SHARE = 0.2
"""Of the clusters, those that occur in most solutions."""

NEAR = 0.85
"""Cosine from which two grams are one move: two of 3 and 4 tokens of which 3 are shared, not two that are shifted."""

MOST_TOKENS = 200_000
"""Are read in one step, of correct and of wrong rollouts each."""

MOST_GRAMS = 256
"""Are compared with each other: those that occur in most solutions."""

Gram = tuple[int, ...]

Embed = Callable[[Tensor], Tensor]
"""Token ids [N] to vectors [N, D]."""


@dataclass(frozen=True)
class Plans:
    """Says which grams of a step plan, and how varied the plans were."""

    grams: frozenset[Gram]
    entropy: float
    """Nats; 0 where no gram occurs, or always the same."""


def find_plans(right: Sequence[Rollout], wrong: Sequence[Rollout], embed: Embed, rng: Random) -> Plans:
    """Finds the strategic grams of a step's correct rollouts, and their entropy over all of its rollouts."""
    solutions = _some(right, rng)
    grams = strategic_grams(solutions, embed)
    return Plans(grams, semantic_entropy([*solutions, *_some(wrong, rng)], grams))


def strategic_grams(solutions: Sequence[Sequence[Gram]], embed: Embed) -> frozenset[Gram]:
    """Finds the grams of the clusters that occur in most solutions; a solution is its sampled messages."""
    found = [{gram for message in solution for gram in _grams(message)} for solution in solutions]
    documents = Counter(gram for one in found for gram in one)
    candidates = sorted((gram for gram, count in documents.items() if count > 1), key=lambda g: (-documents[g], g))
    clusters = _clusters(candidates[:MOST_GRAMS], embed)
    frequency = [sum(not cluster.isdisjoint(one) for one in found) for cluster in clusters]
    best = sorted(range(len(clusters)), key=lambda i: (-frequency[i], i))[: math.ceil(SHARE * len(clusters))]
    return frozenset(gram for i in best for gram in clusters[i])


def semantic_entropy(solutions: Sequence[Sequence[Gram]], grams: Collection[Gram]) -> float:
    """Returns the Shannon entropy, in nats, of how often each of `grams` occurs in `solutions`."""
    counts = Counter(g for solution in solutions for message in solution for g in _grams(message) if g in grams)
    whole = counts.total()
    return math.fsum(count / whole * math.log(whole / count) for count in counts.values())


def credited(sample: Sample, grams: Collection[Gram], alpha: float) -> Sample:
    """Adds `alpha` times its size to the advantage of each token of a strategic gram."""
    planned = planning_tokens(sample, grams)
    raised = zip(sample.advantages, planned, strict=True)
    return replace(sample, advantages=tuple(a + alpha * abs(a) if plans else a for a, plans in raised))


def planning_tokens(sample: Sample, grams: Collection[Gram]) -> tuple[bool, ...]:
    """Says of each token whether it stands in a strategic gram, which lies whole in one sampled message."""
    planned = [False] * len(sample.ids)
    for own, run in groupby(range(len(sample.ids)), key=sample.mask.__getitem__):
        places = list(run) if own else []
        for size in SIZES:
            for start in places[: max(0, len(places) - size + 1)]:
                if sample.ids[start : start + size] in grams:
                    planned[start : start + size] = [True] * size
    return tuple(planned)


def _grams(message: Gram) -> Iterator[Gram]:
    for size in SIZES:
        for start in range(len(message) - size + 1):
            yield message[start : start + size]


def _some(rollouts: Sequence[Rollout], rng: Random) -> list[list[Gram]]:
    """Takes the sampled messages of rollouts until enough tokens are together; what a branch shares is its parent's."""
    chosen: list[list[Gram]] = []
    left = MOST_TOKENS
    for rollout in rng.sample(rollouts, len(rollouts)):
        if left <= 0:
            break
        messages = [ids[:left] for ids in rollout.own_turns]
        left -= sum(map(len, messages))
        chosen.append(messages)
    return chosen


def _clusters(grams: Sequence[Gram], embed: Embed) -> list[set[Gram]]:
    """Puts each gram to the first leader that is near, in the order in which they come, or makes it a leader."""
    if not grams:
        return []
    tokens = sorted({token for gram in grams for token in gram})
    vectors = embed(torch.tensor(tokens)).detach().float().cpu()
    place = {token: i for i, token in enumerate(tokens)}
    meanings = torch.stack([vectors[[place[token] for token in gram]].mean(0) for gram in grams])
    meanings = torch.nn.functional.normalize(meanings, dim=1)
    near = (meanings @ meanings.T >= NEAR).tolist()
    leaders: dict[int, set[Gram]] = {}
    for i, gram in enumerate(grams):
        leader = next((j for j in leaders if near[i][j]), i)
        leaders.setdefault(leader, set()).add(gram)
    return list(leaders.values())
