"""How many tool calls a rollout of training may make: few at first, more with success, or after so many steps.

Source: ScalingInter-RL, 2509.08755, section 3.3, where the number of interactions grows every so many steps; growing on
success is ours. What always holds: a budget is a pure function of what the steps before came to, so a training that is
repeated from its records has the same; it never shrinks, and is never above the agent's. Held-out and sealed questions
are always asked with all of the agent's calls.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

from pydantic import Field

from appliance.records.record import FiniteRecord
from curriculum.difficulty import Difficulty, Seen
from runtime.model import FrozenModel, UnitName

ENOUGH = 4.0
"""Observations (of faded counts) of a level before it has a say."""


class TurnRecipe(FiniteRecord):
    first: Annotated[int, UnitName("calls")] = Field(0, ge=0)
    """Tool calls that a rollout of training may make at first. 0: as many as `recipe.agent.max_calls` from the
    beginning. It needs `max_staleness = 0`."""
    more: Annotated[int, UnitName("calls")] = Field(1, ge=1)
    """So many more each time, up to the agent's."""
    at: Annotated[float, UnitName("share")] = Field(0.5, gt=0, le=1)
    """Mean pass rate of the levels that were asked since it last grew, at which it grows."""
    every: Annotated[int, UnitName("steps")] = Field(0, ge=0)
    """Steps after which it grows at the latest; 0: by success alone."""

    def begun(self, most: int) -> TurnBudget | None:
        """The budget of the first step; None where there is none beside the agent's `most`."""
        return TurnBudget(calls=min(self.first, most)) if self.first and most else None


class TurnBudget(FrozenModel):
    calls: int = Field(ge=1)
    grown: int = 0
    """How often it grew."""
    seen: Difficulty = Difficulty()
    """What came of the steps since it last grew."""

    @property
    def success(self) -> float | None:
        """Mean over levels of how often they were passed, so that one which is asked more often counts no more; None
        where too little is known of each."""
        known = [one.at(self.seen.step) for one in self.seen.counts.values()]
        rates = [passed / (passed + failed) for passed, failed in known if passed + failed >= ENOUGH]
        return sum(rates) / len(rates) if rates else None

    def after(self, seen: Iterable[Seen], recipe: TurnRecipe, most: int) -> TurnBudget:
        """The budget of the next step, once one more has been observed; `most` is the agent's."""
        if self.calls >= most:
            return self
        now = self.model_copy(update={"seen": self.seen.after(seen)})
        good = now.success is not None and now.success >= recipe.at
        if good or (recipe.every and now.seen.step >= recipe.every):
            return TurnBudget(calls=min(most, self.calls + recipe.more), grown=self.grown + 1)
        return now
