"""Builds groups of judged rollouts: masking, selection and advantages.

Pure and deterministic: selection is a function of (seed, step, task) and the rollouts, not of their arrival order. A
rollout with an infrastructure error is masked before selection: neither success nor failure, and not part of the mean.
The rest of its group keeps the recipe's share (half, by default), so selection stays as strict as in a whole group. A
group that lost more than half of its rollouts is dropped, since failures chose the rest; so is one with exactly equal
rewards, which carries no signal. Every group states its outcome in `reason`.

An attempt and its branches are kept or dropped together (`roc.AttemptOutcome` explains why); the recipe's share is one
of attempts, and the group trains on all of their branches.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from random import Random

from appliance.learning.objectives.objective import Graded, Objective
from appliance.learning.objectives.registry import OBJECTIVES
from appliance.learning.recipes.recipe import TrainingRecipe
from appliance.learning.signal.roc import SELECTORS, AttemptOutcome, RolloutOutcome, above_mean, carry_signal
from appliance.records.rollouts import Rollout, RolloutEnd
from appliance.records.training import Group, Judged, SharedPrefix
from verifiers.contract.verdict import Ground
from verifiers.contract.verdict import Outcome as VerdictOutcome


@dataclass(frozen=True)
class Attempt:
    """One attempt at a task: its own rollout and those that branched from it."""

    rollouts: tuple[Rollout, ...]
    """Rollouts, the attempt itself first, if it is left."""
    places: tuple[int, ...]
    """Positions of the rollouts in the group."""


def attempts_of(rollouts: Sequence[Rollout]) -> list[Attempt]:
    """Groups a task's rollouts into attempts, each with its branches, ordered by their first rollout."""
    found: dict[str, list[int]] = {}
    for place, one in enumerate(rollouts):
        found.setdefault(one.branch_of or one.id, []).append(place)
    return [Attempt(tuple(rollouts[place] for place in places), tuple(places)) for places in found.values()]


def credited_attempts(
    attempts: Sequence[Attempt], rewards: Sequence[float], objective: Objective
) -> tuple[dict[int, float], tuple[SharedPrefix, ...]]:
    """Returns each rollout's advantage by its position in the group, and the advantages of shared prefixes. `rewards`
    are the group's; `Objective.credit` has the formula and the errors."""
    graded = [
        [Graded(rewards[place], one.turns) for place, one in zip(each.places, each.rollouts, strict=True)]
        for each in attempts
    ]
    advantages: dict[int, float] = {}
    shared: list[SharedPrefix] = []
    for each, credit in zip(attempts, objective.credit(graded), strict=True):
        advantages |= dict(zip(each.places, credit.leaves, strict=True))
        parting = next(((one.branch_at, one.branch_token) for one in each.rollouts if one.branch_of), None)
        if parting is not None:
            node, token = parting
            first, count = each.rollouts[0].id, len(each.rollouts)
            shared.append(SharedPrefix(rollout=first, node=node, token=token, leaves=count, advantage=credit.shared))
    return advantages, tuple(shared)


def make_groups(judged: Sequence[Judged], recipe: TrainingRecipe, seed: int) -> tuple[Group, ...]:
    """Builds one training group per task, with the rollouts kept and their advantages, in order of first occurrence."""
    by_task: dict[str, list[Judged]] = {}
    for one in judged:
        by_task.setdefault(one.rollout.task, []).append(one)
    return tuple(make_group(members, recipe, seed) for members in by_task.values())


def make_group(judged: Sequence[Judged], recipe: TrainingRecipe, seed: int) -> Group:
    """Builds the training group of one task at one step: the rollouts kept, and their advantages. Raises ValueError for
    rollouts of several tasks, steps or cycles."""
    origins = {(one.rollout.cycle, one.rollout.step, one.rollout.task) for one in judged}
    if len(origins) != 1:
        raise ValueError(f"a group is made of one task at one step, not of {len(origins)}")
    ((cycle, step, task),) = origins
    alive = sorted((one for one in judged if not is_masked(one)), key=lambda one: one.rollout.sample)
    rewards = tuple(reward_of(one, recipe) for one in alive)
    attempts = attempts_of([one.rollout for one in alive])
    selected, reason = _choose(alive, attempts, rewards, len(judged), recipe, Random(f"{seed}/{step}/{task}"))
    objective = OBJECTIVES[recipe.objective_of(judged[0].family)]
    advantages, shared = credited_attempts([attempts[i] for i in selected], rewards, objective)
    kept = sorted(advantages)
    return Group(
        id=f"{cycle}/{step}/{task}",
        cycle=cycle,
        step=step,
        task=task,
        rollouts=tuple(one.rollout.id for one in alive),
        rewards=rewards,
        kept=tuple(kept),
        advantages=tuple(advantages[place] for place in kept),
        shared=shared,
        selector=recipe.selector,
        reason=reason,
    )


def enough(alive: int, sampled: int) -> bool:
    """True if enough of a task's rollouts survived infrastructure errors to be compared."""
    return alive >= math.ceil(sampled / 2)


def is_masked(judged: Judged) -> bool:
    """True if a rollout ended in an infrastructure error, which says nothing about the policy model."""
    return judged.rollout.ended is RolloutEnd.INFRA_ERROR or judged.verdict.outcome is VerdictOutcome.INFRA_ERROR


def of_attempts(judged: Iterable[Judged]) -> list[Judged]:
    """Returns the rollouts that are not branches: these start at hard points and would bias success rates."""
    return [one for one in judged if one.rollout.branch_of is None]


def reward_of(judged: Judged, recipe: TrainingRecipe) -> float:
    """Returns the reward of a judged rollout, from 0 to 1. A permitted abstention earns less than a right answer and
    more than a wrong one, with either reward setting."""
    by_score = recipe.reward == "score" or judged.verdict.ground is Ground.ABSTAINED
    return judged.verdict.score if by_score else float(judged.verdict.passed)


def outcome(judged: Judged, reward: float) -> RolloutOutcome:
    """Summarises a judged rollout for choosing a group's rollouts: reward, calls, failed calls, answers and turns."""
    rollout = judged.rollout
    return RolloutOutcome(
        reward=reward,
        calls=len(rollout.calls),
        failed_calls=rollout.failed_calls,
        answers=rollout.answers,
        turns=rollout.turns,
    )


def _choose(
    alive: Sequence[Judged],
    attempts: Sequence[Attempt],
    rewards: Sequence[float],
    sampled: int,
    recipe: TrainingRecipe,
    rng: Random,
) -> tuple[list[int], str]:
    """Chooses the attempts of a group to train on; returns indices into `attempts`, and the reason as a sentence."""
    lost = sampled - len(alive)
    note = f"; {lost} of {sampled} masked after infrastructure failures" if lost else ""
    if not enough(len(alive), sampled) or len(attempts) < 2:
        return [], f"dropped: {len(alive)} of {sampled} rollouts left, too few to compare{note}"
    if not carry_signal(rewards):
        worth = {1.0: "right", 0.0: "wrong"}.get(rewards[0], f"worth {rewards[0]:g}")
        return [], f"dropped: all {len(alive)} are {worth}, nothing to compare{note}"
    keep = max(2, min(len(attempts), len(attempts) * recipe.keep // recipe.rollouts_per_task))
    outcomes = [
        AttemptOutcome(tuple(outcome(alive[place], rewards[place]) for place in one.places)) for one in attempts
    ]
    values = [one.reward for one in outcomes]
    if not carry_signal(values):  # attempts that are worth the same, some of whose branches are not
        return _parted(attempts, rewards, keep, rng, note)
    selected = SELECTORS[recipe.selector](outcomes, keep, rng)
    if not selected:
        return [], f"dropped: the {keep} drawn of {len(attempts)} are all alike, nothing to compare{note}"
    successes = above_mean(values)
    right, good = sum(successes), sum(successes[i] for i in selected)
    wrong = len(attempts) - right
    reason = f"kept {keep} of {len(attempts)}: {good} of {right} right, {keep - good} of {wrong} wrong"
    branches = sum(len(attempts[i].places) - 1 for i in selected)
    return selected, f"{reason}{_with(branches, len(alive) - len(attempts))}{note}"


def _parted(
    attempts: Sequence[Attempt], rewards: Sequence[float], keep: int, rng: Random, note: str
) -> tuple[list[int], str]:
    """Chooses `keep` attempts at random among attempts of equal reward, preferring those whose branches differ. Returns
    their indices, and the reason as a sentence."""
    parted = [i for i, one in enumerate(attempts) if carry_signal([rewards[place] for place in one.places])]
    others = [i for i in range(len(attempts)) if i not in parted]
    chosen = [*rng.sample(parted, len(parted)), *rng.sample(others, len(others))][:keep]
    branches = sum(len(attempts[i].places) - 1 for i in chosen)
    made = sum(len(one.places) - 1 for one in attempts)
    return sorted(chosen), f"kept {keep} of {len(attempts)}, which are worth the same{_with(branches, made)}{note}"


def _with(kept: int, made: int) -> str:
    return f"; with them {kept} of {made} branches" if made else ""
