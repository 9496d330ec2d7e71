"""Collects the held-out questions of recent cycles, for the filters of new work.

Invariants: questions in the cycles' own files are used as they are; for a cycle without a file the sealed set is
regenerated from its plan. A set that cannot be regenerated is left out, and an audit reports it.
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
"""Number of newest cycles whose questions new work must not copy."""


def recent_questions(data: Path, cycles: Iterable[Cycle], catalog: Catalog) -> list[Task]:
    """Returns the held-out questions of these cycles, each once, in the order of the cycles. A missing sealed set is
    regenerated if possible."""
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
        return []  # one of its tasksets is gone
