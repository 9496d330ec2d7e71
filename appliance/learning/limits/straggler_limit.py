"""Cuts overlong training rollouts, relative to their taskset's recent lengths.

A step waits for its longest rollout while other engine rows idle. So a rollout is cut at `past` times the length that a
`share` of its taskset's rollouts stayed within. A cut rollout counts as a failure, like one out of tokens: dropping
long ones made more grow too long (rStar2-Agent, 2508.20722, "overlong filtering"). The rule itself is ours.

Invariants: limits are a pure function of recorded lengths, never of time or completion order, so a replayed training
has equal limits. No limit tightens by itself: if more than 1 - `share` of a taskset is cut, the limit is the counted
length, so the next limit is at least `past` times as high. Tasksets do not affect each other. Held-out and sealed
questions are never cut.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Annotated

from pydantic import Field, field_validator

from appliance.records.record import FiniteRecord
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
