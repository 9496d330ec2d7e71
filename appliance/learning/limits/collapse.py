"""Sees in a training's own figures that it collapses: reward, entropy, length, mismatch, gradient. Pure rules.

2508.20722 reports a reward that collapsed past a certain step and that nothing cured; what goes before it shows in the
figures of the steps. Held-out success (`early_stopping`) is looked at every so many steps; this is looked at after
each, and both give the same `Advice`. What always holds: a figure is compared with what the same stage showed before,
over the recipe's window, so no rule speaks before two windows have passed; the first window's entropy, lengths and
gradient are what later ones are compared with, and the best window's reward; a step that was seen before changes
nothing, so replayed steps give the same state. What is not finite ends training at once.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated

from pydantic import Field

from appliance.learning.limits.early_stopping import Advice
from appliance.records.record import FiniteRecord
from runtime.model import FrozenModel, UnitName

REWARD, ENTROPY, LENGTH, MISMATCH, GRADIENT = "success", "entropy", "length", "mismatch_kl", "gradient_norm"
"""The mean reward is called `success` in checkpoints, which it is where what passed earns 1 and all else 0."""
FIGURES = (REWARD, ENTROPY, LENGTH, MISMATCH, GRADIENT)
"""What is looked at of a step; a step that nothing was learned from lacks some, and the mean is that of the others."""


class CollapseRecipe(FiniteRecord):
    """When a training has collapsed; a bound of 0 looks at nothing. The defaults are far from what sound runs show."""

    window: Annotated[int, UnitName("steps")] = Field(4, ge=1, le=100)
    """Steps whose mean is looked at."""
    reward_share: Annotated[float, UnitName("share")] = Field(0.25, ge=0, le=1)
    """A mean reward below this share of the best window's is a collapse, where that was .1 or more."""
    entropy_low: Annotated[float, UnitName("share")] = Field(0.0, ge=0)
    """A mean entropy below this share of the first window's is a collapse. Off unless set: learning lowers it."""
    entropy_high: Annotated[float, UnitName("factor")] = Field(4.0, ge=0)
    """A mean entropy above this many times the first window's, and above 1 nat a token, is a collapse."""
    length: Annotated[float, UnitName("factor")] = Field(0.0, ge=0)
    """A mean length this many times as long as the first window's, or as short, is a collapse. Off unless set."""
    mismatch_kl: Annotated[float, UnitName("nats")] = Field(0.5, ge=0)
    """A mean divergence of sampler and trainer above this is a collapse."""
    gradient: Annotated[float, UnitName("factor")] = Field(1e3, ge=0)
    """A mean gradient norm above this many times the first window's is a collapse."""


class CollapseWatch(FrozenModel):
    """Remembers the newest figures and what they are compared with. JSON only: it is in each checkpoint."""

    last_step: int = -1
    recent: tuple[dict[str, float], ...] = ()
    first: dict[str, float] = Field(default_factory=dict)
    """Means of the first window, and of a later one for what no step of that had."""
    best_reward: float = 0.0
    seen: str = ""
    """What was seen of a collapse; empty while there is none."""

    def observe(self, step: int, figures: Mapping[str, float], recipe: CollapseRecipe) -> CollapseWatch:
        """Returns the state after one more step's figures (`FIGURES`)."""
        if step <= self.last_step or self.seen:
            return self
        odd = [name for name in FIGURES if not math.isfinite(figures.get(name, 0.0))]
        if odd:
            return self.model_copy(update={"last_step": step, "seen": f"step {step}: {odd[0]} is not finite"})
        taken = {name: float(figures[name]) for name in FIGURES if name in figures}
        recent = (*self.recent, taken)[-recipe.window :]
        after = self.model_copy(update={"last_step": step, "recent": recent})
        if len(recent) < recipe.window:
            return after
        means = {name: _mean(recent, name) for name in FIGURES if any(name in one for one in recent)}
        if not self.first:
            # Another window begins: what is compared with the first one shares no step with it.
            return after.model_copy(update={"first": means, "recent": (), "best_reward": means.get(REWARD, 0.0)})
        seen = _collapse(means, self.first, self.best_reward, recipe)
        return after.model_copy(
            update={
                "seen": f"step {step}: {seen}" if seen else "",
                "best_reward": max(self.best_reward, means.get(REWARD, 0.0)),
                "first": {**means, **self.first},
            }
        )

    def diverged(self, step: int, reason: str) -> CollapseWatch:
        """Returns the state after a step that could not be learned at all."""
        return self.model_copy(update={"last_step": step, "seen": self.seen or f"step {step}: {reason}"})

    def advice(self, good: int) -> Advice:
        """Says whether to go on; `good` is the step of the last good checkpoint."""
        if not self.seen:
            return Advice(action="continue", step=good, reason="")
        return Advice(action="stop_and_return_to", step=good, reason=f"a collapse, {self.seen}")


def _mean(recent: tuple[dict[str, float], ...], name: str) -> float:
    found = [one[name] for one in recent if name in one]
    return math.fsum(found) / len(found)


def _collapse(means: Mapping[str, float], first: Mapping[str, float], best: float, recipe: CollapseRecipe) -> str:
    """Says what collapsed, with the figures; empty when nothing has."""
    over = f"over {recipe.window} steps"
    if REWARD in means and best >= 0.1 and means[REWARD] < recipe.reward_share * best:
        return f"reward {means[REWARD]:.3f} {over}, {best:.3f} at its best"
    if ENTROPY in means and first.get(ENTROPY, 0.0) > 0:
        entropy, before = means[ENTROPY], first[ENTROPY]
        if entropy < recipe.entropy_low * before or (0 < recipe.entropy_high * before < entropy and entropy > 1):
            return f"entropy {entropy:.3g} nats a token {over}, {before:.3g} at first"
    if LENGTH in means and recipe.length and first.get(LENGTH, 0.0) > 0:
        ratio = means[LENGTH] / first[LENGTH]
        if ratio > recipe.length or ratio * recipe.length < 1:
            return f"{means[LENGTH]:.1f} tokens a rollout {over}, {first[LENGTH]:.1f} at first"
    if 0 < recipe.mismatch_kl < means.get(MISMATCH, 0.0):
        return f"a mismatch of sampler and trainer of {means[MISMATCH]:.3g} nats a token {over}"
    if GRADIENT in means and 0 < recipe.gradient * first.get(GRADIENT, 0.0) < means[GRADIENT]:
        return f"a gradient of norm {means[GRADIENT]:.3g} {over}, {first[GRADIENT]:.3g} at first"
    return ""
