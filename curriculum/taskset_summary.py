"""Summaries and cards of tasksets for a person, and those that ship for the built-in ones.

Invariants: the shipped summaries equal those of `curriculum.summary` (a test compares them), so listing tasksets makes
no task and loads none; requirements that this machine lacks are determined at run time, and never ship. A card is of
the version that it ships with: a new version has none until `benchmarks/tasksets.py --cards` measures it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import resources
from typing import Any

from curriculum.names import PLACES
from runtime.model import FrozenModel

FILE = "taskset_summaries.json"
CARD = "card"
"""Field of a shipped row: figures by topic, each a list by level. Figures that are not measured at any level are left
out."""
DERIVED = frozenset({"name", "domain", "missing"})
"""Fields that do not ship: the table has the first two."""


class TasksetSummary(FrozenModel):
    """Summary of one taskset. Fields derived from drafts come from a few per level."""

    name: str
    domain: str
    about: str
    version: int
    levels: int
    topics: tuple[str, ...]
    checks: tuple[str, ...]
    forms: tuple[str, ...]
    tools: tuple[str, ...]
    environment: str
    turns: int | None
    """Limit of tool calls, if the taskset sets one."""
    tokens: int | None
    null_answers: tuple[str, ...]
    foreign: bool
    """True if only a foreign program decides answers: its score is a foreign reward, never trained on."""
    missing: str
    """Reason why answers cannot be checked on this machine; empty if they can."""


class CardPlace(FrozenModel):
    """Difficulty of one topic at one level, measured without a model. Figures are means over many seeds; None: not
    measured."""

    topic: str
    level: int
    steps: float | None = None
    """Steps of the shortest known solution: tool calls, actions, composed steps, or statements of a program."""
    characters: float | None = None
    """Length of the shortest known solution, in characters."""
    guess: float | None = None
    """Share of questions with the most common answer."""
    one_line: float | None = None
    """Share of questions that one line of Python or SymPy solves in one call of the tool."""
    brute_force: float | None = None
    """Share of questions solved in one call by trying everything, or by doing literally what each sentence says."""


FIGURES = tuple(CardPlace.model_fields)[2:]


def shipped_summaries() -> dict[str, TasksetSummary]:
    """Returns the shipped summaries of built-in tasksets by name, with what this machine lacks."""
    shipped = _shipped()
    for row in shipped.values():
        row.pop(CARD, None)
    return {
        name: TasksetSummary(name=name, domain=domain, missing=_missing(shipped[name]), **shipped[name])
        for domain, rows in PLACES.items()
        for name in rows
        if name in shipped
    }


def shipped_card(name: str, version: int) -> tuple[CardPlace, ...]:
    """Returns the shipped card of this version of a taskset, by topic and level; empty without one."""
    row = _shipped().get(name, {"version": None})
    return tuple(
        CardPlace(topic=topic, level=level, **{figure: values[level] for figure, values in figures.items()})
        for topic, figures in row.get(CARD, {}).items()
        if row["version"] == version
        for level in range(row["levels"])
    )


def _shipped() -> dict[str, dict[str, Any]]:
    return json.loads((resources.files("curriculum") / FILE).read_bytes())  # type: ignore[no-any-return]


def _missing(shipped: dict[str, Any]) -> str:
    return next(filter(None, _lacks(shipped["checks"], shipped["environment"])), "")


def _lacks(checks: Iterable[str], environment: str) -> Iterator[str]:
    """Yields what these kinds of checks and this environment need and this machine lacks. Empty texts for the rest."""
    from curriculum.adapters import ADAPTERS
    from verifiers.registry import kind_named

    for kind in map(kind_named, checks):
        if kind.missing is not None:
            yield kind.missing.load()()
    for adapter in ADAPTERS.data.values():
        if environment in adapter.worlds:
            yield adapter.missing()


def as_shipped(summaries: Iterable[TasksetSummary], cards: Mapping[str, Sequence[CardPlace]]) -> str:
    """Returns these summaries and cards as JSON text, as in the shipped file: a line for each field and topic."""
    rows = {}
    for one in sorted(summaries, key=lambda one: one.name):
        shipped = one.model_dump(mode="json", exclude=set(DERIVED))
        fields = {name: json.dumps(value, ensure_ascii=False) for name, value in shipped.items()}
        if card := cards.get(one.name):
            fields[CARD] = _object({topic: json.dumps(_figures(card, topic, one.levels)) for topic in one.topics}, 3)
        rows[one.name] = _object(fields, 2)
    return f"{_object(rows, 1)}\n"


def _figures(card: Sequence[CardPlace], topic: str, levels: int) -> dict[str, list[float | None]]:
    """Returns a topic's figures, by level, without those that are not measured at any."""
    places = {place.level: place for place in card if place.topic == topic}
    by_level = {one: [getattr(places.get(level), one, None) for level in range(levels)] for one in FIGURES}
    return {one: values for one, values in by_level.items() if any(value is not None for value in values)}


def _object(fields: Mapping[str, str], indent: int) -> str:
    """Returns a JSON object of encoded values, a line each."""
    lines = (f"{' ' * indent}{json.dumps(name)}: {value}" for name, value in fields.items())
    return "{\n" + ",\n".join(lines) + "\n" + " " * (indent - 1) + "}"
