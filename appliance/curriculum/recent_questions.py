"""Gives the questions that recent cycles kept apart, for the doors through which new work comes in.

What always holds: those in the cycles' own files are taken as they are, with the held-out ones; of a cycle without one
its sealed set is made again from its plan, and one that cannot be is left out, which an audit names.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from appliance.curriculum.kept_files import kept_questions
from appliance.records.cycles import Cycle
from curriculum.catalog import Catalog
from curriculum.contract.errors import CurriculumError
from curriculum.contract.task import Split, Task
from curriculum.sealed import sealed_set
from curriculum.seeds import derive

NIGHTS = 30
"""The newest cycles, whose questions nothing new may be a copy of."""


def recent_questions(data: Path, cycles: Iterable[Cycle], catalog: Catalog) -> list[Task]:
    """Each question once, those of the first cycle first."""
    found: dict[str, Task] = {}
    for cycle in cycles:
        kept = kept_questions(data, cycle.id)
        if not any(task.split is Split.SEALED for task in kept):
            kept += _made_again(cycle, catalog)
        for task in kept:
            found.setdefault(task.id, task)
    return list(found.values())


def _made_again(cycle: Cycle, catalog: Catalog) -> list[Task]:
    recipe, tasksets = cycle.plan.get("recipe", {}), cycle.plan.get("tasksets")
    items = recipe.get("evaluation", {}).get("sealed_items")
    if not tasksets or not items:
        return []
    try:
        return list(sealed_set(items, derive("sealed", cycle.seed), tasksets=tasksets, catalog=catalog).tasks)
    except CurriculumError:
        return []  # one of its tasksets is gone, and what was sealed of it with it
