"""Chooses which rollouts of a group are trained on: Resample-on-Correct (2508.20722, section 2.2.3) and its rivals.

A reward for the outcome praises a right answer however it was reached. RoC leaves the reward alone and chooses instead:
of an oversampled group it keeps a uniform share of the failures, for variety, and fills up with successes, preferring
those whose tool calls worked and whose form is clean. Where rewards are fractions, a success is what lies above the
mean of its group.

Pure: outcomes in, indices out; the caller brings the random generator. Every selector returns ascending, distinct
indices, exactly `keep` of them with different rewards among them, or none at all when the rewards would be exactly
equal: such a group carries no signal for a group-relative objective. Rollouts with `infra_error` never come here.

Deviations from the paper: it weights by the inverse of the penalty, which a flawless rollout does not have, so
`CLEAN_OFFSET` is added first; and where its floor would leave no failure, one is kept.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from statistics import mean

CLEAN_OFFSET = 0.05
"""Added to the penalty before it is inverted: a flawless success is 21 times as likely as one with penalty 1."""

NO_CALL_PENALTY = 0.5
"""Error penalty of a rollout that called no tool: between a working call and a failing one (paper)."""

RELEASE_FLOOR = 2
"""Of each kind, as far as there are so many, in the released code (its `min_*_reward_trace_num`)."""


@dataclass(frozen=True)
class RolloutOutcome:
    """Says what a selector needs to know of one rollout."""

    reward: float
    calls: int
    failed_calls: int
    """By structured status, never by what the output says."""
    answers: int
    turns: int

    @property
    def penalty(self) -> float:
        """Is p_total = p_err + p_format, in [0, 2]."""
        errors = self.failed_calls / self.calls if self.calls else NO_CALL_PENALTY
        form = min(1.0, (self.answers - 1) / self.turns) if self.answers and self.turns else 1.0
        return errors + form

    @property
    def weight(self) -> float:
        """Says how strongly a success is preferred; relative to the other successes of its group."""
        return 1 / (self.penalty + CLEAN_OFFSET)


@dataclass(frozen=True)
class AttemptOutcome:
    """Says the same of an attempt together with its branches: they are chosen or left as one.

    A selector prefers by what came out; among branches that would make the value of the place where they part a matter
    of the choice, and the difference from its siblings is what a branch is for. Its reward is the mean of theirs. Its
    penalty is the mean over those that earned the most: RoC asks how a success was reached."""

    leaves: tuple[RolloutOutcome, ...]

    @property
    def reward(self) -> float:
        return mean(leaf.reward for leaf in self.leaves)  # exact: of equal rewards it is that reward

    @property
    def penalty(self) -> float:
        most = max(leaf.reward for leaf in self.leaves)
        best = [leaf.penalty for leaf in self.leaves if leaf.reward == most]
        return math.fsum(best) / len(best)

    @property
    def weight(self) -> float:
        return 1 / (self.penalty + CLEAN_OFFSET)


Choosable = RolloutOutcome | AttemptOutcome
"""What a selector chooses among."""


def roc(outcomes: Sequence[Choosable], keep: int, rng: Random) -> list[int]:
    """Applies the paper's rule: of n rollouts it keeps floor(failures * keep / n) failures, half when keep is n / 2.

    Raises ValueError when `keep` is below 2 or above the size of the group.
    """
    right, wrong = _kinds(outcomes, keep)
    if not right or not wrong:
        return []
    failures = max(1, len(wrong) * keep // len(outcomes))
    weights = [outcomes[i].weight for i in right]
    return sorted([*rng.sample(wrong, failures), *draw(right, weights, keep - failures, rng)])


def roc_sorted(outcomes: Sequence[Choosable], keep: int, rng: Random) -> list[int]:
    """Applies the released code's rule: the successes with the least penalty, the first failures, at least two of each.

    Deterministic; `rng` is not used. Ties go to the earlier rollout. Raises ValueError as `roc` does.
    """
    right, wrong = _kinds(outcomes, keep)
    if not right or not wrong:
        return []
    floor = min(RELEASE_FLOOR, keep // 2)
    least, most = min(floor, len(wrong)), keep - min(floor, len(right))
    failures = min(max(round(len(wrong) * keep / len(outcomes)), least), most, len(wrong))
    failures = max(failures, keep - len(right))
    cleanest = sorted(right, key=lambda i: outcomes[i].penalty)
    return sorted([*wrong[:failures], *cleanest[: keep - failures]])


def uniform(outcomes: Sequence[Choosable], keep: int, rng: Random) -> list[int]:
    """Does as plain GRPO with the same compute: as many are sampled and as many trained on, but chosen blindly.

    Raises ValueError as `roc` does.
    """
    _kinds(outcomes, keep)
    selected = sorted(rng.sample(range(len(outcomes)), keep))
    return selected if carry_signal([outcomes[i].reward for i in selected]) else []


Selector = Callable[[Sequence[Choosable], int, Random], list[int]]

SELECTORS: Mapping[str, Selector] = {"roc": roc, "roc_sorted": roc_sorted, "uniform": uniform}
"""By their name in the recipe."""


def draw(items: Sequence[int], weights: Sequence[float], count: int, rng: Random) -> list[int]:
    """Draws `count` distinct items, each next one in proportion to its weight among those left.

    A race: every item arrives after an exponential time with its weight as rate, and the first ones win
    (Efraimidis & Spirakis 2006, in logarithms).
    """
    arrival = {item: rng.expovariate(weight) for item, weight in zip(items, weights, strict=True)}
    return sorted(arrival, key=arrival.__getitem__)[:count]


def carry_signal(rewards: Sequence[float]) -> bool:
    """Says whether a group can be learned from: not where all rewards are exactly equal, however they were rounded."""
    return len(set(rewards)) > 1


def above_mean(rewards: Sequence[float]) -> list[bool]:
    """Says of each reward whether it is a success in its group; none is where all are equal."""
    if not carry_signal(rewards):
        return [False] * len(rewards)
    middle, best = mean(rewards), max(rewards)
    return [reward > middle or reward == best for reward in rewards]  # the mean may be rounded up to the best


def _kinds(outcomes: Sequence[Choosable], keep: int) -> tuple[list[int], list[int]]:
    if not 2 <= keep <= len(outcomes):
        raise ValueError(f"cannot keep {keep} of {len(outcomes)} rollouts: at least 2, at most all")
    successes = above_mean([outcome.reward for outcome in outcomes])
    right = [i for i, success in enumerate(successes) if success]
    wrong = [i for i, success in enumerate(successes) if not success]
    return right, wrong
