"""Stops a training whose held-out success collapses, and names the checkpoint to return to.

2508.20722 reports a reward that collapsed past a certain step and never recovered, so training over many cycles needs a
judge other than its own reward; `collapse` reads a training's own figures. A pure state machine: it observes held-out
success and advises whether to continue. Its state is a plain record that survives a restart, and a replayed observation
changes nothing.

Success on a hundred items has a standard error of five points, and the best of several observations is a lucky one. So
an observation is low only if it lies the recipe's drop below the best *and* more than noise explains (`NOISE` standard
errors of a difference). One low observation stops training only if twice as deep; two in a row do. With the default of
96 items, a model that stays at its best is stopped by chance in about one training of a hundred (tested).
"""

from __future__ import annotations

import math
from typing import Literal

from runtime.model import FrozenModel

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
