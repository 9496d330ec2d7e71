"""Decides which tasks of a training step get a whole group of rollouts, from a first block of each. Pure.

Every task gets a first block. A whole group adds a second block of fixed size. A task whose first block has different
rewards always qualifies. Another qualifies if the chance that its group will have both, per rollout of the second
block, is at least what a fresh task offers per rollout:

    chance(task) / second block  >=  rate = max over rules of  E[groups with both] / E[rollouts]

The chance follows from the posterior of the task's (taskset, level) (`appliance.jobs.success_model`), learned from the
groups of earlier steps, and from the task's own first block. `rate` is the fixed point for the step's own mixture of
places (Dinkelbach, Management Science 13, 1967). Two blocks as in 2506.09016 (withdrawn), which has no posterior and
continues by a fixed band of pass rates.

Bias. Given its rewards, a group's rollouts are independent draws of π(·|pass) and π(·|fail), for any rule that reads
rewards alone. With p the task's success rate, E[∇log π | pass] = ∇p / p and E[∇log π | fail] = -∇p / (1 - p), so a
group of n with m passes and advantages (r - m/n) / s, where s depends on m alone, contributes on average
m (n - m) / (n s) · ∇p / (p (1 - p)): nothing if rewards are equal, else a positive multiple of ∇p. The rule therefore
changes the weight of a task and never the direction of its gradient, as the difficulty sampler does: weight moves away
from tasks that are hardly ever or almost always solved. The second block has one size, so luck ends no group; a first
block with both outcomes that is beyond the budget is a small group. The argument needs two reward values, hence
`reward = "passed"` (a permitted abstention is a third, rare one); RoC selects afterwards, as in any group. Stopped
tasks have fewer rollouts, which would bias a mean over all, so pass rates are counted in first blocks.

Invariants: a step samples at most the rollouts that its tasks would have with whole groups. Equal records give equal
choices. Outcomes of a task's first block and of earlier steps decide; arrival order and time do not.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import count
from typing import NamedTuple

from pydantic import Field, PrivateAttr

from appliance.jobs.success_model import ASSUMED, SuccessModel, Tries, fitted
from appliance.records.training import Judged
from curriculum.difficulty import Place, Seen
from runtime.model import FrozenModel

NEWEST = 64
"""Groups of a taskset's level that count: the model changes with every step."""
ROUNDS = 20
"""Maximum improvements of the rate; it converges quadratically."""


class GroupCounts(FrozenModel):
    """Passes and failures of the newest groups at each taskset and level."""

    groups: dict[str, tuple[tuple[int, int], ...]] = Field(default_factory=dict)
    """Passes and failures of each group, newest last, by place without topic."""
    _models: dict[str, SuccessModel] = PrivateAttr(default_factory=dict)

    def after(self, seen: Iterable[Seen]) -> GroupCounts:
        """Returns the counts with the groups of one more step."""
        groups = dict(self.groups)
        for place, passed, judged in seen:
            if judged:
                key = _key(place)
                groups[key] = (*groups.get(key, ()), (passed, judged - passed))[-NEWEST:]
        return GroupCounts(groups=groups)

    def model(self, place: Place) -> SuccessModel:
        """Returns the model of a place's success rates: learned from its groups, around that of all groups."""
        if "" not in self._models:
            self._models[""] = _fitted((one for key in sorted(self.groups) for one in self.groups[key]), ASSUMED)
        key = _key(place)
        if key not in self._models:
            self._models[key] = _fitted(self.groups.get(key, ()), self._models[""])
        return self._models[key]


class Screen(NamedTuple):
    """Sizes of a step's blocks, and what a fresh task offers."""

    first: int
    """Rollouts of the first block."""
    whole: int
    """Rollouts of a whole group."""
    rate: float
    """Expected groups with different rewards, per rollout."""
    tasks: int
    """Tasks that get a first block."""

    @property
    def more(self) -> int:
        """Rollouts of the second block."""
        return self.whole - self.first

    @classmethod
    def of(cls, models: Sequence[SuccessModel], first: int, whole: int) -> Screen:
        """Plans a step whose rollouts would be whole groups of tasks with these models. First blocks are so few that
        the rest of the budget is enough for their second blocks, up to one standard deviation more than expected."""
        rate, cost = 0.0, float(whole)
        for _ in range(ROUNDS):
            expected = [_expected(model, first, whole - first, rate) for model in models]
            gain, cost = (sum(column) / len(models) for column in zip(*expected, strict=True))
            if gain / cost <= rate + 1e-9:
                break
            rate = gain / cost
        share = min(1.0, max(0.0, (cost - first) / (whole - first)))  # rounding may leave [0, 1]

        def fit(tasks: int) -> bool:
            likely = tasks * share + math.sqrt(tasks * share * (1 - share))
            return tasks * first + likely * (whole - first) <= len(models) * whole

        return cls(first, whole, rate, next(n for n in count(len(models)) if not fit(n + 1)))

    def continued(self, blocks: Sequence[tuple[SuccessModel, int, int]], budget: int) -> list[int]:
        """Returns the indices of the tasks that get a second block, ascending. `blocks` are the model, passes and
        failures of each first block, `budget` the rollouts of all blocks. The most promising come first, equal ones in
        order. A block without an outcome is not continued: what broke it may break more."""
        chances = [model.differing(passed, failed, self.more) for model, passed, failed in blocks]
        decided = [passed + failed > 0 for _, passed, failed in blocks]
        worthwhile = [at for at, chance in enumerate(chances) if decided[at] and chance >= self.rate * self.more]
        places = max(0, budget - self.first * len(blocks)) // self.more
        return sorted(sorted(worthwhile, key=lambda at: -chances[at])[:places])


def in_first_block(judged: Iterable[Judged], first: int) -> list[Judged]:
    """Returns the rollouts of first blocks, which all tasks have; all rollouts if `first` is 0."""
    return [one for one in judged if not first or one.rollout.sample < first]


def _expected(model: SuccessModel, first: int, more: int, rate: float) -> tuple[float, float]:
    """Returns a task's expected groups with different rewards, and its expected rollouts."""
    mixed = model.differing(0, 0, first)
    failing = 1 - model.success_within(0, first)
    gain, cost = mixed, first + mixed * more
    for share, passed, failed in ((failing, 0, first), (1 - mixed - failing, first, 0)):
        chance = model.differing(passed, failed, more)
        if chance >= rate * more:
            gain, cost = gain + share * chance, cost + share * more
    return gain, cost


def _fitted(groups: Iterable[tuple[int, int]], centre: SuccessModel) -> SuccessModel:
    return fitted((Tries(failed, passed=passed) for passed, failed in groups), centre)


def _key(place: Place) -> str:
    return place._replace(topic="").key
