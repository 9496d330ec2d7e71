"""Hours of a night from the newest recorded cycle with the same recipe; read-only, without the daemon."""

from __future__ import annotations

import json
from collections.abc import Mapping
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


def measured_night(ledger: Path, recipe: Recipe, parameters: int) -> MeasuredNight | None:
    """Returns the hours of a night with this recipe, from the recorded phases of the newest finished cycle whose recipe
    is the same but for `OTHER` and whose model has so many `parameters`; None without one. Raises AssayError for an
    unreadable ledger."""
    if not ledger.exists():
        return None
    with reading(ledger) as sql:
        newest = sql.execute("SELECT key, payload FROM cycles ORDER BY sequence DESC LIMIT ?", (NEWEST,)).fetchall()
        counts = dict(sql.execute("SELECT cycle, count(*) FROM steps GROUP BY cycle").fetchall())
    for name, payload in newest:
        cycle = json.loads(payload)
        seconds, steps = cycle.get("seconds", {}), counts.get(name, 0)
        same = _timed(cycle["plan"].get("recipe", {})) == _timed(recipe.model_dump(mode="json"))
        whole = cycle["state"] == "done" and steps and seconds.get("training") and "stages" not in cycle["plan"]
        if whole and same and _parameters(ledger.parent, cycle["plan"].get("start")) == parameters:
            others = sum(seconds.values()) - seconds["training"] - seconds.get("warm_start", 0.0)
            hours = (seconds["training"] / steps * recipe.training.steps + others) / 3600
            return MeasuredNight(hours=hours, steps=steps, cycle=name)
    return None


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
