"""Holds the recipe's settings of branching rollouts, and says how a task's places are shared out.

What always holds: a task never has more rollouts than the recipe's `rollouts_per_task`, branches among them, and each
branch draws at most the tokens that a rollout may. It loads no torch.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from appliance.agent.branching import Branching
from appliance.records.record import FiniteRecord
from runtime.model import UnitName


class BranchingRecipe(FiniteRecord):
    where: Literal["nowhere", "failed_call", "repair", "highest_entropy", "both"] = "nowhere"
    """Where attempts branch: before the first call that failed after one that worked, at the turn after the first
    failed call, before the token that the policy model was least sure of, or at a failed call and otherwise there
    (`both`)."""
    continuations: Annotated[int, UnitName("rollouts")] = Field(1, ge=1)
    """Branches of one attempt, beside the attempt itself."""
    share: Annotated[float, UnitName("share")] = Field(0.5, gt=0, lt=1)
    """How much of the rollouts of each task, and so at most of their tokens, is for branches."""

    def places(self, rollouts: int) -> int:
        """Counts those of a task's rollouts that are for branches."""
        return 0 if self.where == "nowhere" else int(self.share * rollouts)

    def refusal(self, rollouts: int, staleness: int = 0) -> str | None:
        """Says why so many rollouts of a task cannot be shared out; None when they can."""
        if self.where == "nowhere":
            return None
        if staleness:
            return (
                f"rollouts that go on while the learner works (max_staleness = {staleness}) do not branch, because "
                'what lies below a branch would be of several policies: take max_staleness = 0, or where = "nowhere"'
            )
        places = self.places(rollouts)
        if places < self.continuations:
            return (
                f"{self.share:g} of {rollouts} rollouts are {places} places for branches, too few for "
                f"{self.continuations} continuations: raise share or rollouts_per_task"
            )
        if rollouts - places < 2:
            return f"{self.share:g} of {rollouts} rollouts leaves fewer than 2 attempts to compare: lower share"
        return None

    def of_task(self, rollouts: int) -> Branching | None:
        """Says how the attempts of a task branch; None where they do not. Who may is settled in advance."""
        if self.where == "nowhere":
            return None
        first = self.places(rollouts) // self.continuations
        return Branching(each=self.continuations, in_all=1 << 62, where=self.where, first=first)
