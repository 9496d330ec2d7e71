"""Stops a training whose held-out success collapses, and says which checkpoint to go back to.

2508.20722 reports that past a certain step the reward collapsed and nothing cured it, so training that goes on night
after night needs a judge that is not its own reward; what a training's own figures show is in `collapse`. A pure state
machine: it observes held-out success at some steps and answers whether to go on. Its state is a plain record that
survives a restart, and an observation that it has already seen (a step replayed after a kill) changes nothing.

Success on a hundred items is off by five points (one standard error), and the best of several observations is a lucky
one. So one is low only when it lies the recipe's drop below the best *and* more than noise explains (`NOISE` standard
errors of a difference), and a single low one stops nothing unless it lies twice as deep; two in a row do. With the
default of 96 items, a model that stays at its best is stopped by chance in about one training of a hundred (tested).
"""

from __future__ import annotations

import math
from typing import Literal

from pydantic import AliasChoices, ConfigDict, Field

from runtime.model import FrozenModel

PATIENCE = 2
"""Low observations in a row that end training."""

CRASH = 2.0
"""A single one this many times as far below the best as a low one ends training at once."""

NOISE = 2.5
"""Standard errors of the difference of two observations that count as noise."""


class Advice(FrozenModel):
    action: Literal["continue", "stop_and_return_to"]
    step: int
    """The best step so far: where to go back to when training stops."""
    reason: str


class EarlyStopping(FrozenModel):
    """Remembers what was observed. `observe` gives a new one; `model_dump` and `model_validate` save and restore it."""

    model_config = ConfigDict(populate_by_name=True)

    drop: float
    """`watch_drop` of the recipe: how far success may fall below its best, of 1."""
    items: int
    """How many held-out items each observation is of."""
    best_step: int = -1
    best_success: float = -1.0
    last_step: int = -1
    last_success: float = -1.0
    """The newest observation."""
    low_in_a_row: int = Field(default=0, validation_alias=AliasChoices("low_in_a_row", "low_looks"))
    """The newest observations that were low; `low_looks` in checkpoints of earlier versions."""
    stopped: bool = False
    reason: str = ""
    """Of the newest observation, in words."""

    def observe(self, step: int, success: float) -> tuple[EarlyStopping, Advice]:
        """Returns the state after one more observation (success in [0, 1] at `step`), and what to do.

        A step that is not after the last one is a replay and is not counted again. Raises ValueError when success is
        not a share.
        """
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
        """Returns what was observed at the best step or at the newest one."""
        return self.best_success if step == self.best_step else self.last_success

    def _standard_error(self, success: float) -> float:
        """Returns that of the difference between this success and the best one, as if both were the same in truth."""
        pooled = (self.best_success + success) / 2
        return math.sqrt(2 * pooled * (1 - pooled) / self.items)

    def advice(self, reason: str) -> Advice:
        """Says what to do as things are. Once stopped, it stays so."""
        action: Literal["continue", "stop_and_return_to"] = "stop_and_return_to" if self.stopped else "continue"
        return Advice(action=action, step=self.best_step, reason=reason)


def _reaches(fall: float, line: float) -> bool:
    """Compares shares of items, whose differences are not exact in binary."""
    return fall > line or math.isclose(fall, line, abs_tol=1e-9)
