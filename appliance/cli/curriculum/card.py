"""A taskset's card in `assay curriculum show`: its measured difficulty, without a model and by model.

Invariant: a figure that was not measured is shown as such, never as 0.
"""

from __future__ import annotations

from pathlib import Path

import typer

from appliance.cli.show.printing import show_line, show_table
from appliance.evaluation.measured import MeasuredPlace, measured_models
from curriculum.taskset_summary import FIGURES, CardPlace, TasksetSummary, shipped_card

COUNTED = ("steps", "characters")
"""Figures that are not shares."""


class TasksetCard(TasksetSummary):
    """A taskset with its measured difficulty: without a model, and for each model that was measured here."""

    card: tuple[CardPlace, ...]
    """Empty if not measured."""
    measured: tuple[MeasuredPlace, ...]


def card_of(one: TasksetSummary, data: Path) -> TasksetCard:
    """Adds the shipped card of this version, and what the data folder has of models."""
    return TasksetCard(
        **one.model_dump(), card=shipped_card(one.name, one.version), measured=tuple(measured_models(data, one.name))
    )


def show_card(one: TasksetCard) -> None:
    """Prints the difficulty of each topic and level, with a column for each figure and model that has any."""
    places = {(place.level, place.topic): place for place in one.card}
    rates = {(each.level, each.topic, each.model): f"{each.passed}/{each.judged}" for each in one.measured}
    figures = [name for name in FIGURES if any(getattr(place, name) is not None for place in one.card)]
    models = list(dict.fromkeys(each.model for each in one.measured))

    def cell(place: CardPlace | None, name: str) -> str:
        value = None if place is None else getattr(place, name)
        return "-" if value is None else f"{value:.0f}" if name in COUNTED else f"{100 * value:.0f} %"

    typer.echo()
    show_table(
        ("level and topic", *(name.replace("_", " ") for name in figures), *models),
        [
            (
                f"{level}/{topic}",
                *(cell(places.get((level, topic)), name) for name in figures),
                *(rates.get((level, topic, model), "-") for model in models),
            )
            for level, topic in sorted({*places, *((each.level, each.topic) for each in one.measured)})
        ],
        empty="difficulty: not measured",
    )
    lacking = [name.replace("_", " ") for name in FIGURES if name not in figures]
    if one.card and lacking:
        show_line(f"not measured: {', '.join(lacking)}")
