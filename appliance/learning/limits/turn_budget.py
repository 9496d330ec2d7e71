"""Tool call budget of training rollouts: small at first, growing with success or steps.

Source: ScalingInter-RL, 2509.08755, section 3.3, where the number of interactions grows on a step schedule; growing on
success is ours. Invariants: a budget is a pure function of the earlier steps, so a replayed training has an equal one;
it never shrinks or exceeds the agent's. Held-out and sealed questions always get all of the agent's calls.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

from pydantic import Field

from appliance.records.record import FiniteRecord
from curriculum.difficulty import Difficulty, Seen
from runtime.model import FrozenModel, UnitName

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
