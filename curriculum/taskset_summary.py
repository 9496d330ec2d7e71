"""Summaries of tasksets for a person, and those that ship for the built-in ones.

Invariants: the shipped summaries equal those of `curriculum.summary` (a test compares them), so listing tasksets makes
no task and loads none; requirements that this machine lacks are determined at run time, and never ship.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from importlib import resources
from typing import Any

from curriculum.names import PLACES
from runtime.model import FrozenModel

FILE = "taskset_summaries.json"
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


def shipped_summaries() -> dict[str, TasksetSummary]:
    """Returns the shipped summaries of built-in tasksets by name, with what this machine lacks."""
    shipped = json.loads((resources.files("curriculum") / FILE).read_bytes())
    return {
        name: TasksetSummary(name=name, domain=domain, missing=_missing(shipped[name]), **shipped[name])
        for domain, rows in PLACES.items()
        for name in rows
        if name in shipped
    }


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


def as_shipped(summaries: Iterable[TasksetSummary]) -> str:
    """Returns these summaries as JSON text, as in the shipped file."""
    rows = {one.name: one.model_dump(mode="json", exclude=set(DERIVED)) for one in summaries}
    return json.dumps({name: rows[name] for name in sorted(rows)}, indent=1, ensure_ascii=False) + "\n"
