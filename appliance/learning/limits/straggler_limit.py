"""How long a rollout of training may get before it is cut, by how long those of its taskset were in the steps before.

A step waits for its longest rollout, and the rows of an engine whose rollouts have ended are idle meanwhile. So what is
far longer than nearly all others of its taskset is cut: at `past` times the length that a `share` of a step's stayed
within. A cut rollout stays and is a failure, like one whose tokens ran out: to leave long ones out made more of them
grow too long (rStar2-Agent, 2508.20722, "overlong filtering"). The rule itself is ours.

What always holds: the limits are a pure function of the lengths in recorded steps, never of time or of who ended first,
so a training that is repeated from its records has the same. None tightens by itself: of a step in which more than
1 - `share` of a taskset are cut their limit is the length that counts, so the next one is at least `past` times as
high. No taskset is cut by the lengths of another. Held-out and sealed questions are never cut.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Annotated

from pydantic import Field, field_validator

from appliance.records.record import FiniteRecord
from runtime.model import FrozenModel, UnitName

WINDOW = 3
"""Steps that asked a taskset whose lengths have a say; before there are as many, nothing of it is cut."""
LEAST = 1.1
"""Of `past`: a limit that is no higher than what it cut could never rise again."""


class StragglerRecipe(FiniteRecord):
    past: Annotated[float, UnitName("factor")] = Field(0.0, ge=0)
    """A rollout of training is cut, and is a failure, at so many times the length that most rollouts of its taskset
    stayed within in the last 3 steps that asked it. 0: at `recipe.agent.max_tokens` alone; otherwise at least 1.1."""
    share: Annotated[float, UnitName("share")] = Field(0.9, ge=0.5, lt=1)
    """How many of a taskset's rollouts in a step are most."""

    @field_validator("past")
    @classmethod
    def _rises_again(cls, value: float) -> float:
        if 0 < value < LEAST:
            raise ValueError(f"take 0, which cuts nothing, or at least {LEAST}, so that the limit can rise again")
        return value


class StragglerLimits(FrozenModel):
    lengths: tuple[tuple[str, int, int], ...] = ()
    """Taskset, step, and the tokens behind their prompts that most of its rollouts stayed within; as they came."""

    def of_step(self, step: int, recipe: StragglerRecipe, staleness: int = 0) -> dict[str, int]:
        """By taskset: tokens behind its prompt that a rollout of this step may have; what has no limit is not there.
        Steps that are fewer than `staleness` back may be unknown when it begins, and have no say."""
        limits = {}
        for taskset in {name for name, _, _ in self.lengths}:
            known = [most for name, earlier, most in self.lengths if name == taskset and earlier < step - staleness]
            if recipe.past and len(known) >= WINDOW:
                limits[taskset] = math.ceil(recipe.past * max(known[-WINDOW:]))
        return limits

    def after(
        self, step: int, lengths: Mapping[str, Sequence[int]], recipe: StragglerRecipe, staleness: int = 0
    ) -> StragglerLimits:
        """What is known once a step has been recorded whose rollouts had so many tokens behind their prompts, by
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
