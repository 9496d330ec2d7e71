"""Selects which rollouts of a group to train on: Resample-on-Correct (2508.20722, section 2.2.3) and alternatives.

An outcome reward rates a right answer equally however it was reached. RoC keeps the reward and selects instead: of an
oversampled group it keeps a uniform share of the failures, for variety, and fills up with successes, preferring working
tool calls and clean form. With fractional rewards, a success lies above its group's mean.

Pure: outcomes in, indices out; the caller supplies the random generator. Every selector returns ascending, distinct
indices: exactly `keep` with different rewards among them, or none if the rewards would be exactly equal, since such a
group carries no signal for a group-relative objective. Rollouts with `infra_error` are removed beforehand.

Deviations from the paper: it weights by the inverse penalty, which is infinite for a flawless rollout, so
`CLEAN_OFFSET` is added first; and where its floor would leave no failure, one is kept.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from statistics import mean

CLEAN_OFFSET = 0.05
"""Added to the penalty before inversion: a flawless success is 21 times as likely as one with penalty 1."""

NO_CALL_PENALTY = 0.5
"""Error penalty of a rollout without tool calls: between a working and a failing call (paper)."""

RELEASE_FLOOR = 2
"""Minimum of each kind, if available, in the released code (its `min_*_reward_trace_num`)."""


@dataclass(frozen=True)
class RolloutOutcome:
    """Reward, calls and answers of one rollout, by which a group's rollouts are selected."""

    reward: float
    calls: int
    failed_calls: int
    """Failed calls by structured status, never by output text."""
    answers: int
    turns: int

    @property
    def penalty(self) -> float:
        """Penalty of a rollout for failed calls and repeated answers: p_total = p_err + p_format, in [0, 2]."""
        errors = self.failed_calls / self.calls if self.calls else NO_CALL_PENALTY
        form = min(1.0, (self.answers - 1) / self.turns) if self.answers and self.turns else 1.0
        return errors + form

    @property
    def weight(self) -> float:
        """Selection weight of a successful rollout, relative to the other successes of its group; a low penalty weighs
        more."""
        return 1 / (self.penalty + CLEAN_OFFSET)


@dataclass(frozen=True)
class AttemptOutcome:
    """Outcomes of an attempt and its branches, which are selected or dropped together.

    A selector prefers by outcome; selecting among branches would bias the value of their branch point, and a branch
    exists to differ from its siblings. The reward is the branches' mean. The penalty is the mean over those with the
    highest reward: RoC asks how a success was reached.
    """

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
"""Items that a selector chooses among."""


def roc(outcomes: Sequence[Choosable], keep: int, rng: Random) -> list[int]:
    """Selects the rollouts of a group to keep, by the paper's rule; returns their indices. Of n rollouts keeps
    floor(failures * keep / n) failures, half when keep is n / 2. Raises ValueError if `keep` is below 2 or above the
    group's size."""
    right, wrong = _kinds(outcomes, keep)
    if not right or not wrong:
        return []
    failures = max(1, len(wrong) * keep // len(outcomes))
    weights = [outcomes[i].weight for i in right]
    return sorted([*rng.sample(wrong, failures), *draw(right, weights, keep - failures, rng)])


def roc_sorted(outcomes: Sequence[Choosable], keep: int, rng: Random) -> list[int]:
    """Selects the rollouts of a group to keep, by the released code's rule; returns their indices. Keeps successes with
    the lowest penalty and the first failures, at least two of each if available; none if all or none succeeded.
    Deterministic; `rng` is unused. Ties go to the earlier rollout. Raises ValueError as `roc`."""
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
    """Selects the rollouts of a group to keep uniformly at random, none if they earned equal rewards: plain GRPO with
    equal compute. Raises ValueError as `roc`."""
    _kinds(outcomes, keep)
    selected = sorted(rng.sample(range(len(outcomes)), keep))
    return selected if carry_signal([outcomes[i].reward for i in selected]) else []


Selector = Callable[[Sequence[Choosable], int, Random], list[int]]

SELECTORS: Mapping[str, Selector] = {"roc": roc, "roc_sorted": roc_sorted, "uniform": uniform}
"""Selectors by their name in the recipe."""


def draw(items: Sequence[int], weights: Sequence[float], count: int, rng: Random) -> list[int]:
    """Draws `count` distinct items, each in proportion to its weight among those left. Implemented as a race: every
    item arrives after an exponential time with its weight as rate (Efraimidis & Spirakis 2006, in logarithms)."""
    arrival = {item: rng.expovariate(weight) for item, weight in zip(items, weights, strict=True)}
    return sorted(arrival, key=arrival.__getitem__)[:count]


def carry_signal(rewards: Sequence[float]) -> bool:
    """True unless all rewards of a group are exactly equal, however they were rounded."""
    return len(set(rewards)) > 1


def above_mean(rewards: Sequence[float]) -> list[bool]:
    """Marks each reward that is a success in its group: above the mean, or the highest; none if all are equal."""
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
