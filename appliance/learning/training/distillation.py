"""On-policy distillation: the policy model's own tokens, each worth what a teacher thinks of it.

The rollouts are sampled as for reinforcement learning; the teacher reads them and writes nothing. Each sampled token's
advantage is the teacher's log-probability of it less the sampler's, at one temperature: the sampled estimate of the
negative reverse KL, token by token, without discount (GKD 2306.13649, MiniLLM 2306.08543). What always holds: no reward
has a part in it; what the infrastructure broke is left out; the same rollouts and the same teacher give the same
advantages.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from appliance.learning.batches import Sample
from appliance.learning.errors import LearningError
from appliance.learning.recipes.recipe import TrainingRecipe
from appliance.learning.signal.grouping import is_masked, reward_of
from appliance.records.training import Group, Judged

TeacherScore = Callable[[Sequence[Sequence[int]], float], Sequence[Sequence[float]]]
"""Log-probabilities of given tokens at a temperature: one for each token of a conversation but its first."""


def every_rollout(judged: Sequence[Judged], recipe: TrainingRecipe) -> tuple[Group, ...]:
    """Makes one group for each task, in which all sound rollouts are kept; their advantages are the teacher's to say,
    token by token, and 0 on record."""
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
    """Gives each trained token its advantage, and returns the mean reverse KL in nats a token (0 without tokens).

    Raises LearningError when the teacher gives no finite probability."""
    told = score([one.ids for one in chosen], temperature) if chosen else []
    made: list[Sample] = []
    divergence = 0.0
    for one, teachers in zip(chosen, told, strict=True):
        of = (0.0, *teachers) if len(teachers) + 1 == len(one.ids) else (math.nan,) * len(one.ids)
        advantages = tuple(of[place] - one.logprobs[place] if own else 0.0 for place, own in enumerate(one.mask))
        if not all(map(math.isfinite, advantages)):
            raise LearningError(
                f"the teacher gives no finite probability to {one.rollout}",
                hint="take a teacher with the same tokenizer, whose weights are whole",
            )
        divergence -= math.fsum(advantages)
        made.append(replace(one, advantages=advantages))
    return made, divergence / max(1, sum(one.trained_tokens for one in made))
