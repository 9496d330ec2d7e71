"""Hours of a night from the recorded steps of the newest cycle with the same recipe; read-only, without the daemon."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from appliance.learning.recipes.recipe import Recipe
from appliance.models.export_model import reading
from appliance.readiness.model import UnusableModelError, shape_in
from runtime.model import FrozenModel

NEWEST = 20
"""Cycles that are searched."""
OTHER = frozenset({"steps", "learning_rate", "warmup_steps", "clip_low", "clip_high"})
"""Training settings that do not change the duration of a step."""


class MeasuredNight(FrozenModel):
    hours: float
    steps: int
    """Recorded steps that the hours follow from."""
    cycle: str


def measured_night(ledger: Path, recipe: Recipe, parameters: int, items: int) -> MeasuredNight | None:
    """Returns the hours of a night with this recipe, from the newest cycle that has recorded a step, whose recipe is
    the same but for `OTHER`, and whose model has so many `parameters`; None without one. While that cycle trains, its
    rollouts give the time of the `items` conversations that follow. Raises AssayError for an unreadable ledger."""
    if not ledger.exists():
        return None
    with reading(ledger) as sql:
        newest = sql.execute("SELECT key, payload FROM cycles ORDER BY sequence DESC LIMIT ?", (NEWEST,)).fetchall()
        recorded: dict[str, list[dict[str, float]]] = {}
        for name, metrics in sql.execute("SELECT cycle, metrics FROM steps").fetchall():
            recorded.setdefault(name, []).append(json.loads(metrics))
    for name, payload in newest:
        cycle = json.loads(payload)
        seconds, steps = cycle.get("seconds", {}), recorded.get(name, [])
        same = _timed(cycle["plan"].get("recipe", {})) == _timed(recipe.model_dump(mode="json"))
        timed = cycle["state"] in ("done", "running") and steps and seconds.get("training")
        alone = "stages" not in cycle["plan"]
        if timed and alone and same and _parameters(ledger.parent, cycle["plan"].get("start")) == parameters:
            others = sum(seconds.values()) - seconds["training"] - seconds.get("warm_start", 0.0)
            if cycle["state"] == "running" and not seconds.get("evaluation"):
                others += items * _seconds_of_one(steps)
            hours = (seconds["training"] / len(steps) * recipe.training.steps + others) / 3600
            return MeasuredNight(hours=hours, steps=len(steps), cycle=name)
    return None


def _seconds_of_one(steps: Sequence[Mapping[str, float]]) -> float:
    """Returns the seconds that a rollout of these steps took, sampled and verified beside the others."""
    spent = sum(one.get("sampling_seconds", 0.0) + one.get("verifying_seconds", 0.0) for one in steps)
    return spent / max(1.0, sum(one.get("rollouts", 0.0) for one in steps))


def _parameters(data: Path, start: str | None) -> int:
    """Returns the parameters of the model from which a cycle started; 0 if they are unknown."""
    try:
        return shape_in(data / "models" / start).parameters if start else 0
    except UnusableModelError:
        return 0


def _timed(recipe: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the settings of a recipe that decide how long a step and an evaluation take."""
    training = {key: value for key, value in recipe.get("training", {}).items() if key not in OTHER}
    return {**{key: recipe.get(key) for key in ("tasksets", "agent", "evaluation")}, "training": training}
