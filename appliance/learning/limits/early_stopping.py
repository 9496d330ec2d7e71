"""Ends training early: when reward stops rising, or when figures show a collapse.

2508.20722 reports a reward that collapsed past a certain step and never recovered, so training over many cycles needs a
judge other than its own reward; `collapse` reads a training's own figures. A pure state machine: it observes held-out
success and advises whether to continue. Its state is a plain record that survives a restart, and a replayed observation
changes nothing.

Success on a hundred items has a standard error of five points, and the best of several observations is a lucky one. So
an observation is low only if it lies the recipe's drop below the best *and* more than noise explains (`NOISE` standard
errors of a difference). One low observation stops training only if twice as deep; two in a row do. With the default of
96 items, a model that stays at its best is stopped by chance in about one training of a hundred (tested).

2508.20722 reports a reward that collapsed past a certain step and never recovered; earlier signs show in the steps'
figures. Held-out success (`early_stopping`) is checked at intervals, these figures after each step; both return an
`Advice`.

Invariants: a figure is compared with the same stage's earlier ones over the recipe's window, so no rule fires before
two windows. Entropy, length and gradient are compared with the first window, reward with the best one. A repeated step
changes nothing, so replay gives an equal state. A non-finite figure ends training immediately.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field

from appliance.records.record import FiniteRecord
from runtime.model import FrozenModel, UnitName

PATIENCE = 2
"""Low observations in a row that end training."""

CRASH = 2.0
"""Multiple of the low threshold at which a single observation ends training."""

NOISE = 2.5
"""Standard errors of a difference of two observations that count as noise."""


class Advice(FrozenModel):
    action: Literal["continue", "stop_and_return_to"]
    step: int
    """Best step so far: the checkpoint to return to when training stops."""
    reason: str


class EarlyStopping(FrozenModel):
    """State of early stopping. `observe` returns a new one; saved and restored as JSON."""

    drop: float
    """`watch_drop` of the recipe: allowed drop of success below its best, of 1."""
    items: int
    """Held-out items per observation."""
    best_step: int = -1
    best_success: float = -1.0
    last_step: int = -1
    last_success: float = -1.0
    """Newest observation."""
    low_in_a_row: int = 0
    """Consecutive low observations."""
    stopped: bool = False
    reason: str = ""
    """Description of the newest observation."""

    def observe(self, step: int, success: float) -> tuple[EarlyStopping, Advice]:
        """Returns the early-stopping state after a validation (success in [0, 1] at `step`), and the advice. Ignores a
        step not after the last one: it is a replay. Raises ValueError if success is not a share."""
        if not 0.0 <= success <= 1.0:
            raise ValueError(f"success is a share of items, not {success}")
        if step <= self.last_step:
            return self, self.advice(f"step {step} was seen before")
        newest = {"last_step": step, "last_success": success}
        if success > self.best_success:
            best = {"best_step": step, "best_success": success, "low_in_a_row": 0}
            better = self.model_copy(update={**best, **newest, "reason": f"best so far: {success:.3f}"})
            return better, better.advice(better.reason)
        fall = self.best_success - success
        line = max(self.drop, NOISE * self._standard_error(success))
        low = self.low_in_a_row + 1 if _reaches(fall, line) else 0
        stop = low >= PATIENCE or _reaches(fall, CRASH * line)
        reason = f"{success:.3f}, {100 * fall:.1f} points below the best, low {low} times in a row"
        seen = {"low_in_a_row": low, "stopped": self.stopped or stop, **newest}
        after = self.model_copy(update={**seen, "reason": reason})
        return after, after.advice(reason)

    def success_at(self, step: int) -> float:
        """Returns the validation success at the best step if `step` is that step, else the newest."""
        return self.best_success if step == self.best_step else self.last_success

    def _standard_error(self, success: float) -> float:
        """Returns the standard error of a validation success's difference from the best, if both had the same mean."""
        pooled = (self.best_success + success) / 2
        return math.sqrt(2 * pooled * (1 - pooled) / self.items)

    def advice(self, reason: str) -> Advice:
        """Returns early stopping's advice to continue, or to stop and return to the best step, with this reason. A stop
        is permanent."""
        action: Literal["continue", "stop_and_return_to"] = "stop_and_return_to" if self.stopped else "continue"
        return Advice(action=action, step=self.best_step, reason=reason)


def _reaches(fall: float, line: float) -> bool:
    """True if a drop of success reaches a limit, with a tolerance: differences of shares are inexact in binary."""
    return fall > line or math.isclose(fall, line, abs_tol=1e-9)


REWARD, ENTROPY, LENGTH, MISMATCH, GRADIENT = "success", "entropy", "length", "mismatch_kl", "gradient_norm"
"""Figure names. The mean reward is called `success` in checkpoints, which it equals for rewards of 0 and 1."""
FIGURES = (REWARD, ENTROPY, LENGTH, MISMATCH, GRADIENT)
"""Figures checked per step; a step without training lacks some, and the mean skips it."""


class CollapseRecipe(FiniteRecord):
    """Collapse thresholds of a training; a bound of 0 disables its check. The defaults are far from what healthy runs
    show."""

    window: Annotated[int, UnitName("steps")] = Field(4, ge=1, le=100)
    """Steps averaged per window."""
    reward_share: Annotated[float, UnitName("share")] = Field(0.25, ge=0, le=1)
    """Collapse if the mean reward falls below this share of the best window's, where that was .1 or more."""
    entropy_low: Annotated[float, UnitName("share")] = Field(0.0, ge=0)
    """Collapse if the mean entropy falls below this share of the first window's. Off by default: learning lowers
    entropy."""
    entropy_high: Annotated[float, UnitName("factor")] = Field(4.0, ge=0)
    """Collapse if the mean entropy exceeds this multiple of the first window's, and 1 nat per token."""
    length: Annotated[float, UnitName("factor")] = Field(0.0, ge=0)
    """Collapse if the mean length grows or shrinks by this factor from the first window. Off by default."""
    mismatch_kl: Annotated[float, UnitName("nats")] = Field(0.5, ge=0)
    """Collapse if the mean divergence of sampler and trainer exceeds this."""
    gradient: Annotated[float, UnitName("factor")] = Field(1e3, ge=0)
    """Collapse if the mean gradient norm exceeds this multiple of the first window's."""


class CollapseWatch(FrozenModel):
    """Recent training figures and their reference values, to detect a collapse. JSON only: saved in each checkpoint."""

    last_step: int = -1
    recent: tuple[dict[str, float], ...] = ()
    first: dict[str, float] = Field(default_factory=dict)
    """Means of the first window, or of the first window that had the figure."""
    best_reward: float = 0.0
    seen: str = ""
    """Description of the collapse; empty without one."""

    def observe(self, step: int, figures: Mapping[str, float], recipe: CollapseRecipe) -> CollapseWatch:
        """Returns the state of collapse detection after one more training step's figures (`FIGURES`)."""
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
            # A new window begins, so that later windows share no step with the first.
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
        """Returns the state of collapse detection after a step that failed to train, for this reason."""
        return self.model_copy(update={"last_step": step, "seen": self.seen or f"step {step}: {reason}"})

    def advice(self, good: int) -> Advice:
        """Returns the advice to continue training, or after a collapse to return to `good`, the last good checkpoint's
        step."""
        if not self.seen:
            return Advice(action="continue", step=good, reason="")
        return Advice(action="stop_and_return_to", step=good, reason=f"a collapse, {self.seen}")


def _mean(recent: tuple[dict[str, float], ...], name: str) -> float:
    found = [one[name] for one in recent if name in one]
    return math.fsum(found) / len(found)


def _collapse(means: Mapping[str, float], first: Mapping[str, float], best: float, recipe: CollapseRecipe) -> str:
    """Describes the collapse that a training's recent mean figures show, compared with the first and the best; empty
    without one."""
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
