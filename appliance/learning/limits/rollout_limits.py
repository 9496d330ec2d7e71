"""Limits of rollouts by earlier steps: turns, and tokens of stragglers.

A step waits for its longest rollout while other engine rows idle. So a rollout is cut at `past` times the length that a
`share` of its taskset's rollouts stayed within. A cut rollout counts as a failure, like one out of tokens: dropping
long ones made more grow too long (rStar2-Agent, 2508.20722, "overlong filtering"). The rule itself is ours.

Invariants: limits are a pure function of recorded lengths, never of time or completion order, so a replayed training
has equal limits. No limit tightens by itself: if more than 1 - `share` of a taskset is cut, the limit is the counted
length, so the next limit is at least `past` times as high. Tasksets do not affect each other. Held-out and sealed
questions are never cut.

Source: ScalingInter-RL, 2509.08755, section 3.3, where the number of interactions grows on a step schedule; growing on
success is ours. Invariants: a budget is a pure function of the earlier steps, so a replayed training has an equal one;
it never shrinks or exceeds the agent's. Held-out and sealed questions always get all of the agent's calls.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated

from pydantic import Field, field_validator

from appliance.records.record import FiniteRecord
from curriculum.difficulty import Difficulty, Seen
from runtime.model import FrozenModel, UnitName

WINDOW = 3
"""Steps of a taskset whose lengths count; with fewer, nothing is cut."""
LEAST = 1.1
"""Minimum of `past`: a lower limit could never rise again."""


class StragglerRecipe(FiniteRecord):
    past: Annotated[float, UnitName("factor")] = Field(0.0, ge=0)
    """A training rollout is cut, and fails, at this multiple of the length that most rollouts of its taskset stayed
    within in the last 3 steps that asked it. 0: only at `recipe.agent.max_tokens`; else at least 1.1."""
    share: Annotated[float, UnitName("share")] = Field(0.9, ge=0.5, lt=1)
    """Share of a taskset's rollouts in a step that counts as most."""

    @field_validator("past")
    @classmethod
    def _rises_again(cls, value: float) -> float:
        if 0 < value < LEAST:
            raise ValueError(f"use 0 to cut nothing, or at least {LEAST}, so that the limit can rise again")
        return value


class StragglerLimits(FrozenModel):
    lengths: tuple[tuple[str, int, int], ...] = ()
    """Taskset, step, and the completion tokens that most of its rollouts stayed within; in recording order."""

    def of_step(self, step: int, recipe: StragglerRecipe, staleness: int = 0) -> dict[str, int]:
        """Returns the completion token limit of each taskset's rollouts for this step; unlimited tasksets are absent.
        The last `staleness` steps may be unknown when it begins, and are ignored."""
        limits = {}
        for taskset in {name for name, _, _ in self.lengths}:
            known = [most for name, earlier, most in self.lengths if name == taskset and earlier < step - staleness]
            if recipe.past and len(known) >= WINDOW:
                limits[taskset] = math.ceil(recipe.past * max(known[-WINDOW:]))
        return limits

    def after(
        self, step: int, lengths: Mapping[str, Sequence[int]], recipe: StragglerRecipe, staleness: int = 0
    ) -> StragglerLimits:
        """Returns the completion token limits after a recorded step; `lengths` are its rollouts' completion tokens by
        taskset."""
        if not recipe.past:
            return self
        known = list(self.lengths)
        for taskset, some in lengths.items():
            if some:
                most = sorted(some)[math.ceil(recipe.share * len(some)) - 1]
                known.append((taskset, step, max(1, most)))
                own = [one for one in known if one[0] == taskset]
                known = [one for one in known if one not in own[: -WINDOW - staleness]]
        return StragglerLimits(lengths=tuple(known))


ENOUGH = 4.0
"""Minimum (faded) observations of a level before it counts."""


class TurnRecipe(FiniteRecord):
    first: Annotated[int, UnitName("calls")] = Field(0, ge=0)
    """Tool calls of a training rollout at first. 0: always `recipe.agent.max_calls`. Requires `max_staleness = 0`."""
    more: Annotated[int, UnitName("calls")] = Field(1, ge=1)
    """Calls added per increase, up to the agent's limit."""
    at: Annotated[float, UnitName("share")] = Field(0.5, gt=0, le=1)
    """Mean pass rate, over levels asked since the last increase, that triggers an increase."""
    every: Annotated[int, UnitName("steps")] = Field(0, ge=0)
    """Maximum steps between increases; 0: increase on success only."""

    def begun(self, most: int) -> TurnBudget | None:
        """Returns the first step's budget of tool calls per rollout; None if only the agent's limit `most` applies."""
        return TurnBudget(calls=min(self.first, most)) if self.first and most else None


class TurnBudget(FrozenModel):
    calls: int = Field(ge=1)
    grown: int = 0
    """Number of increases."""
    seen: Difficulty = Difficulty()
    """Pass counts since the last increase."""

    @property
    def success(self) -> float | None:
        """Mean pass rate over difficulty levels, each with equal weight; None with too few observations."""
        known = [one.at(self.seen.step) for one in self.seen.counts.values()]
        rates = [passed / (passed + failed) for passed, failed in known if passed + failed >= ENOUGH]
        return sum(rates) / len(rates) if rates else None

    def after(self, seen: Iterable[Seen], recipe: TurnRecipe, most: int) -> TurnBudget:
        """Returns the budget of tool calls after an observed step: larger after enough success or steps, up to the
        agent's limit `most`."""
        if self.calls >= most:
            return self
        now = self.model_copy(update={"seen": self.seen.after(seen)})
        good = now.success is not None and now.success >= recipe.at
        if good or (recipe.every and now.seen.step >= recipe.every):
            return TurnBudget(calls=min(most, self.calls + recipe.more), grown=self.grown + 1)
        return now
