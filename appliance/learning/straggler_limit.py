"""How long a rollout of training may get before it is cut, by how long those of the steps before were.

A step waits for its longest rollout, and the rows of an engine whose rollouts have ended are idle meanwhile. So what is
far longer than nearly all is cut: at `past` times the length that a `share` of a step's rollouts stayed within. A cut
rollout stays and is a failure, like one whose tokens ran out: to leave long ones out made more of them grow too long
(rStar2-Agent, 2508.20722, "overlong filtering"). The rule itself is ours.

What always holds: the limit is a pure function of the lengths in recorded steps, never of time or of who ended first,
so a training that is repeated from its records has the same. It does not tighten by itself: a step of which more than
1 - `share` are cut has its limit as that length, so the next one is `past` times as high. Held-out and sealed
questions are never cut.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated

from pydantic import Field, field_validator

from appliance.records.record import FiniteRecord
from runtime.model import FrozenModel, UnitName

WINDOW = 3
"""Steps whose lengths have a say; before there are as many, nothing is cut."""
LEAST = 1.1
"""Of `past`: a limit that is no higher than what it cut could never rise again."""


class StragglerRecipe(FiniteRecord):
    past: Annotated[float, UnitName("factor")] = Field(0.0, ge=0)
    """A rollout of training is cut, and is a failure, at so many times the length that most rollouts of the last 3
    steps stayed within. 0: at `recipe.agent.max_tokens` alone; otherwise at least 1.1."""
    share: Annotated[float, UnitName("share")] = Field(0.9, ge=0.5, lt=1)
    """How many of a step's rollouts are most."""

    @field_validator("past")
    @classmethod
    def _rises_again(cls, value: float) -> float:
        if 0 < value < LEAST:
            raise ValueError(f"take 0, which cuts nothing, or at least {LEAST}, so that the limit can rise again")
        return value


class StragglerLimit(FrozenModel):
    lengths: dict[int, int] = Field(default_factory=dict)
    """By step: the tokens behind their prompts that most rollouts stayed within."""

    def of_step(self, step: int, recipe: StragglerRecipe, staleness: int = 0) -> int | None:
        """Tokens behind its prompt that a rollout of this step may have; None where nothing is cut. Steps that are
        fewer than `staleness` back may be unknown when it begins, and have no say."""
        known = [tokens for earlier, tokens in self.lengths.items() if earlier < step - staleness][-WINDOW:]
        return math.ceil(recipe.past * max(known)) if recipe.past and len(known) == WINDOW else None

    def after(self, step: int, lengths: Sequence[int], recipe: StragglerRecipe, staleness: int = 0) -> StragglerLimit:
        """What is known once a step has been recorded whose rollouts had so many tokens behind their prompts."""
        if not lengths or not recipe.past:
            return self
        most = sorted(lengths)[math.ceil(recipe.share * len(lengths)) - 1]
        known = [*self.lengths.items(), (step, max(1, most))]
        return StragglerLimit(lengths=dict(known[-WINDOW - staleness :]))
