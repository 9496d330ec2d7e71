"""Hours of a night come from a recorded cycle with the same recipe, and from nothing else."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest
from broken_models import sound

from appliance.errors import AssayError
from appliance.learning.recipes.recipe import Recipe, TrainingRecipe
from appliance.ledger.sqlite import SqliteLedger
from appliance.models.measured_night import measured_night
from appliance.records.cycles import Cycle, CycleState

SIZE = 657_024
RECIPE = Recipe(training=TrainingRecipe(steps=20))


def recorded(file: Path, name: str, **changes: Any) -> None:
    cycle = Cycle(
        id=name,
        kind="night",
        seed=1,
        plan={"recipe": RECIPE.model_dump(mode="json"), "start": "a"},
        phase="done",
        state=CycleState.DONE,
        created="2026-11-29T00:00:00Z",
        updated="2026-11-29T05:00:00Z",
        seconds={"training": 3600.0, "evaluation": 1800.0, "warm_start": 900.0},
    )
    with SqliteLedger(file) as ledger:
        ledger.put_cycle(cycle.model_copy(update=changes))
    if not (model := file.parent / "models" / "a").exists():
        sound(model)
    with sqlite3.connect(file) as sql:
        sql.executemany(
            "INSERT INTO steps (cycle, step, metrics, payload) VALUES (?, ?, '{}', '{}')", [(name, at) for at in (1, 2)]
        )


def test_hours_are_those_of_recorded_steps_and_evaluation(tmp_path: Path) -> None:
    file = tmp_path / "ledger.sqlite3"
    assert measured_night(file, RECIPE, SIZE, 0) is None
    recorded(file, "night-1")
    found = measured_night(file, RECIPE, SIZE, 0)
    assert found is not None
    assert (found.hours, found.steps, found.cycle) == (20 * 0.5 + 0.5, 2, "night-1")
    longer = RECIPE.model_copy(update={"training": RECIPE.training.model_copy(update={"steps": 40})})
    assert measured_night(file, longer, SIZE, 0).hours == pytest.approx(20.5)  # type: ignore[union-attr]
    assert measured_night(file, RECIPE, SIZE + 1, 0) is None, "another model"
    other = RECIPE.model_copy(update={"training": RECIPE.training.model_copy(update={"method": "lora"})})
    assert measured_night(file, other, SIZE, 0) is None


@pytest.mark.parametrize(
    "changes",
    [
        {"state": CycleState.CANCELLED},
        {"seconds": {}},
        {"plan": {"recipe": RECIPE.model_dump(mode="json"), "start": "a", "stages": []}},
        {"plan": {"recipe": RECIPE.model_dump(mode="json"), "start": "gone"}},
        {"plan": {}},
    ],
)
def test_a_cycle_that_says_nothing_of_a_night_is_passed_over(tmp_path: Path, changes: dict[str, Any]) -> None:
    file = tmp_path / "ledger.sqlite3"
    recorded(file, "night-1")
    recorded(file, "night-2", **changes)
    found = measured_night(file, RECIPE, SIZE, 0)
    assert found is not None
    assert found.cycle == "night-1"


def test_one_step_of_a_night_that_still_trains_gives_its_hours(tmp_path: Path) -> None:
    file = tmp_path / "ledger.sqlite3"
    recorded(file, "night-1", state=CycleState.RUNNING, seconds={"training": 3600.0, "prepare": 360.0})
    with sqlite3.connect(file) as sql:
        figures = '{"sampling_seconds": 900.0, "verifying_seconds": 60.0, "rollouts": 128.0}'
        sql.execute("UPDATE steps SET metrics = ?", (figures,))
    found = measured_night(file, RECIPE, SIZE, 960)
    assert found is not None
    assert found.hours == pytest.approx(20 * 0.5 + 0.1 + 960 * 7.5 / 3600)


def test_a_file_that_is_no_ledger_is_refused(tmp_path: Path) -> None:
    (tmp_path / "ledger.sqlite3").write_text("x" * 2000)
    with pytest.raises(AssayError, match="cannot be read"):
        measured_night(tmp_path / "ledger.sqlite3", RECIPE, SIZE, 0)
