"""On-policy distillation: a teacher's log-probabilities are the advantages of the policy model's own tokens.

The teacher is another model, or the policy model itself behind a prompt that says more (`signal.self_distillation`).
Rollouts are sampled as for reinforcement learning; the teacher only scores them. A sampled token's advantage is the
teacher's log-probability minus the sampler's, at one temperature: the sampled estimate of the negative reverse KL, per
token, without discount (GKD 2306.13649, MiniLLM 2306.08543). Invariants: rewards are not used; infrastructure errors
are excluded; equal rollouts and teacher give equal advantages.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from appliance.learning.batches import Sample
from appliance.learning.errors import LearningError
from appliance.learning.recipes.recipe import TrainingRecipe
from appliance.learning.signal.grouping import is_masked, reward_of
from appliance.records.training import Group, Judged

TeacherScore = Callable[[Sequence[Sequence[int]], float], Sequence[Sequence[float]]]
"""Returns log-probabilities of conversations at a temperature: one per token, except the first."""
NO_PROMPTS: Mapping[str, Sequence[int]] = {}
"""Prompts of a step whose rollouts the policy model does not score itself."""


def every_rollout(judged: Sequence[Judged], recipe: TrainingRecipe) -> tuple[Group, ...]:
    """Builds one training group per task that keeps all rollouts without infrastructure errors. Recorded advantages are
    0, since the teacher sets them per token."""
    by_task: dict[str, list[Judged]] = {}
    for one in judged:
        by_task.setdefault(one.rollout.task, []).append(one)
    return tuple(_group(members, recipe) for members in by_task.values())


def _group(members: Sequence[Judged], recipe: TrainingRecipe) -> Group:
    alive = sorted((one for one in members if not is_masked(one)), key=lambda one: one.rollout.sample)
    first = members[0].rollout
    return Group(
        id=f"{first.cycle}/{first.step}/{first.task}",
        cycle=first.cycle,
        step=first.step,
        task=first.task,
        rollouts=tuple(one.rollout.id for one in alive),
        rewards=tuple(reward_of(one, recipe) for one in alive),
        kept=tuple(range(len(alive))),
        advantages=(0.0,) * len(alive),
        selector="teacher",
        reason=f"kept all {len(alive)}: a teacher scores each token",
    )


def distilled(chosen: Sequence[Sample], score: TeacherScore, temperature: float) -> tuple[list[Sample], float]:
    """Sets each trained token's advantage from the teacher's score; returns the samples and the mean reverse KL in nats
    per token (0 without tokens). Raises LearningError if the teacher returns a non-finite probability."""
    told = score([one.ids for one in chosen], temperature) if chosen else []
    made: list[Sample] = []
    divergence = 0.0
    for one, teachers in zip(chosen, told, strict=True):
        of = (0.0, *teachers) if len(teachers) + 1 == len(one.ids) else (math.nan,) * len(one.ids)
        advantages = tuple(of[place] - one.logprobs[place] if own else 0.0 for place, own in enumerate(one.mask))
        if not all(map(math.isfinite, advantages)):
            raise LearningError(
                f"the teacher gives no finite probability to {one.rollout}",
                hint="use a teacher with the same tokenizer and undamaged weights",
            )
        divergence -= math.fsum(advantages)
        made.append(replace(one, advantages=advantages))
    return made, divergence / max(1, sum(one.trained_tokens for one in made))


def behind_prompts(
    chosen: Sequence[Sample], judged: Sequence[Judged], prompts: Mapping[str, Sequence[int]]
) -> list[Sample]:
    """Returns the samples of rollouts with a prompt in `prompts`, with that in place of the question they were sampled
    with. Omits rewritten conversations, whose later samples have no such question."""
    asked = {one.rollout.id: len(one.rollout.nodes[0].ids) for one in judged if len(one.rollout.samples) == 1}
    made: list[Sample] = []
    for one in chosen:
        if one.rollout not in prompts or (start := asked.get(one.rollout)) is None:
            continue
        prompt = tuple(prompts[one.rollout])
        none = (0.0,) * (len(prompt) + len(one.ids) - start)
        mask = (False,) * len(prompt) + one.mask[start:]
        made.append(Sample(one.rollout, prompt + one.ids[start:], mask, none, none))
    return made


def self_taught(
    chosen: Sequence[Sample], told: Mapping[str, Sequence[float]], groups: Sequence[Group], share: float
) -> tuple[list[Sample], dict[str, float]]:
    """Mixes the trained tokens' advantages with the model's own scores `told` of these tokens, by rollout.

    A token's gain is its score minus the sampler's log-probability. Its advantage becomes `share` times the gain, less
    the mean gain of its group's tokens, plus the rest of what it was. The mean is a baseline: an unfamiliar prompt
    lowers all scores, which says nothing about a token. Samples without scores stay as they are. Returns the samples,
    and the figures `reverse_kl` (nats per scored token) and `taught_fraction`."""
    of = {rollout: group.id for group in groups for rollout in group.rollouts}
    gains: list[list[float]] = []
    by_group: dict[str, list[float]] = {}
    for one in chosen:
        own = [logprob for logprob, trained in zip(one.logprobs, one.mask, strict=True) if trained]
        scores = told.get(one.rollout, own)
        gains.append([score - logprob for score, logprob in zip(scores, own, strict=True)])
        if one.rollout in told:
            by_group.setdefault(of[one.rollout], []).extend(gains[-1])
    means = {name: math.fsum(found) / len(found) for name, found in by_group.items()}
    made = [
        replace(one, advantages=_mixed(one, found, means[of[one.rollout]], share)) if one.rollout in told else one
        for one, found in zip(chosen, gains, strict=True)
    ]
    taught = sum(map(len, by_group.values()))
    divergence = -math.fsum(gain for found in by_group.values() for gain in found) / max(1, taught)
    tokens = sum(one.trained_tokens for one in chosen)
    return made, {"reverse_kl": divergence, "taught_fraction": taught / max(1, tokens)}


def _mixed(one: Sample, gains: Iterable[float], mean: float, share: float) -> tuple[float, ...]:
    left = iter(gains)
    advantages = zip(one.advantages, one.mask, strict=True)
    return tuple((1 - share) * value + share * (next(left) - mean) if own else value for value, own in advantages)
