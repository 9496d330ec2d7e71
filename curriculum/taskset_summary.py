"""What a person wants to know of a taskset before using it, and what ships of the tasksets of the code.

What always holds: what ships is what `curriculum.summary` says of each (a test holds them together), so that whoever
lists the tasksets makes no task and loads none; what this machine lacks is found out here and now, and never ships.
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
"""What does not ship: the table has the first two."""


class TasksetSummary(FrozenModel):
    """One taskset. What follows from its drafts was seen in a few of each level."""

    name: str
    domain: str
    about: str
    version: int
    levels: int
    topics: tuple[str, ...]
    checks: tuple[str, ...]
    """Kinds of checks of its answers."""
    forms: tuple[str, ...]
    """How an answer is marked."""
    tools: tuple[str, ...]
    environment: str
    turns: int | None
    """Tool calls at most, where it says so itself."""
    tokens: int | None
    null_answers: tuple[str, ...]
    foreign: bool
    """Whether nothing of ours decides about its answers: their score is a foreign reward, and never trained on."""
    missing: str
    """Why its answers cannot be checked on this machine; empty when they can."""


def shipped_summaries() -> dict[str, TasksetSummary]:
    """Those of tasksets of the code by name, for this machine; one that nothing was written down of has none."""
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
    """Says what those checks, and worlds of that environment, do not have here."""
    from curriculum.adapters import ADAPTERS
    from verifiers.registry import kind_named

    for kind in map(kind_named, checks):
        if kind.missing is not None:
            yield kind.missing.load()()
    for adapter in ADAPTERS.values():
        if environment in adapter.worlds:
            yield adapter.missing()


def as_shipped(summaries: Iterable[TasksetSummary]) -> str:
    """The text of the file that says this of them."""
    rows = {one.name: one.model_dump(mode="json", exclude=set(DERIVED)) for one in summaries}
    return json.dumps({name: rows[name] for name in sorted(rows)}, indent=1, ensure_ascii=False) + "\n"
