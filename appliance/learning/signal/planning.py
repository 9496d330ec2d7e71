"""Finds a rollout's planning tokens and raises their credit: HICRA (2509.03646).

A strategic n-gram is a run of 3 to 5 tokens shared by correct solutions. Invariants: n-grams come only from the step's
correct solutions, and only from sampled text, not tool results. Randomness comes only from the caller's generator, and
work is bounded: at most `MOST_TOKENS` read and `MOST_GRAMS` compared.

As in the paper, n-grams are clustered by meaning, and those of the most frequent fifth of clusters are strategic. Ours:
an n-gram's meaning is the mean of the model's own input embeddings, where the paper uses a sentence encoder over words;
an n-gram joins the first cluster with a near enough leader, and one found in a single solution joins none. Semantic
entropy is the Shannon entropy of the strategic n-grams' frequencies.
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
"""Tokens per n-gram."""

SHARE = 0.2
"""Share of clusters, most frequent first, that count as strategic."""

NEAR = 0.85
"""Minimum cosine of two n-grams in a cluster: 3- and 4-grams sharing 3 tokens qualify, shifted ones do not."""

MOST_TOKENS = 200_000
"""Maximum tokens read per step, of correct and of wrong rollouts each."""

MOST_GRAMS = 256
"""Maximum n-grams compared, most frequent first."""

Gram = tuple[int, ...]

Embed = Callable[[Tensor], Tensor]
"""Function from token ids [N] to vectors [N, D]."""


@dataclass(frozen=True)
class Plans:
    """Strategic n-grams in a training step's solutions, and their variety."""

    grams: frozenset[Gram]
    entropy: float
    """Nats; 0 if no n-gram occurs, or only one."""


def find_plans(right: Sequence[Rollout], wrong: Sequence[Rollout], embed: Embed, rng: Random) -> Plans:
    """Returns the strategic n-grams of a training step's correct rollouts, and their entropy over all its rollouts."""
    solutions = _some(right, rng)
    grams = strategic_grams(solutions, embed)
    return Plans(grams, semantic_entropy([*solutions, *_some(wrong, rng)], grams))


def strategic_grams(solutions: Sequence[Sequence[Gram]], embed: Embed) -> frozenset[Gram]:
    """Returns the strategic n-grams of solutions: those in the most frequent clusters. A solution is its sampled
    messages."""
    found = [{gram for message in solution for gram in _grams(message)} for solution in solutions]
    documents = Counter(gram for one in found for gram in one)
    candidates = sorted((gram for gram, count in documents.items() if count > 1), key=lambda g: (-documents[g], g))
    clusters = _clusters(candidates[:MOST_GRAMS], embed)
    frequency = [sum(not cluster.isdisjoint(one) for one in found) for cluster in clusters]
    best = sorted(range(len(clusters)), key=lambda i: (-frequency[i], i))[: math.ceil(SHARE * len(clusters))]
    return frozenset(gram for i in best for gram in clusters[i])


def semantic_entropy(solutions: Sequence[Sequence[Gram]], grams: Collection[Gram]) -> float:
    """Returns the Shannon entropy, in nats, of the frequencies of the strategic n-grams `grams` in `solutions`."""
    counts = Counter(g for solution in solutions for message in solution for g in _grams(message) if g in grams)
    whole = counts.total()
    return math.fsum(count / whole * math.log(whole / count) for count in counts.values())


def credited(sample: Sample, grams: Collection[Gram], alpha: float) -> Sample:
    """Returns the sample with the advantage of each token in a strategic n-gram raised by `alpha` times its size."""
    planned = planning_tokens(sample, grams)
    raised = zip(sample.advantages, planned, strict=True)
    return replace(sample, advantages=tuple(a + alpha * abs(a) if plans else a for a, plans in raised))


def planning_tokens(sample: Sample, grams: Collection[Gram]) -> tuple[bool, ...]:
    """Marks each token inside a strategic n-gram, which lies within one sampled message."""
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
    """Collects the sampled messages of rollouts in random order, up to a limit of tokens; a branch's shared tokens
    count for its parent."""
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
    """Clusters n-grams of similar meaning: each joins the first similar cluster leader, or becomes a leader."""
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
