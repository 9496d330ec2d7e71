"""Summarizes a taskset for a person, from its table and drafts. Pure."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import islice

from curriculum import seeds
from curriculum.catalog import Catalog
from curriculum.contract.errors import ExhaustedError
from curriculum.contract.task import Split
from curriculum.contract.taskset import Described, SaysWhoScores, TaskDraft, Taskset
from curriculum.names import PLACES
from curriculum.taskset_summary import TasksetSummary

DRAWS = 4
"""Tasks per level that are searched for kinds of checks."""
TRIES = 64
"""Seeds per task: about half of the questions belong to training."""


def summary_of(catalog: Catalog, name: str) -> TasksetSummary:
    """Returns the summary of a taskset. Raises UnknownTasksetError."""
    taskset = catalog.named(name)
    drafts = [draft for level in range(taskset.level_count) for draft in examples(catalog, name, level, DRAWS)]
    return TasksetSummary(
        name=name,
        domain=catalog.domain_of(name),
        about=about(taskset),
        version=taskset.version,
        levels=taskset.level_count,
        topics=tuple(taskset.topics),
        checks=tuple(sorted({draft.spec.kind for draft in drafts})),
        forms=tuple(sorted({draft.form.value for draft in drafts})),
        tools=tuple(dict.fromkeys(tool for draft in drafts for tool in draft.tools)),
        environment=next((draft.environment for draft in drafts), ""),
        turns=max((draft.turns for draft in drafts if draft.turns is not None), default=None),
        tokens=max((draft.tokens for draft in drafts if draft.tokens is not None), default=None),
        null_answers=tuple(taskset.null_answers),
        foreign=isinstance(taskset, SaysWhoScores) and taskset.foreign,
        missing=taskset.missing(),
    )


def examples(catalog: Catalog, name: str, level: int, count: int) -> list[TaskDraft]:
    """Returns the first `count` training tasks of a level; empty if there are none. Raises as `Catalog.draft`."""
    return [draft for _, draft in training_drafts(catalog, name, level, count, seeds.seeds(Split.TRAIN))]


def training_drafts(
    catalog: Catalog, name: str, level: int, count: int, numbers: Iterator[int]
) -> list[tuple[int, TaskDraft]]:
    """Returns the first `count` of the seeds `numbers` whose question belongs to training, with their drafts. Returns
    fewer if the level is exhausted. Otherwise raises as `Catalog.draft`."""
    found: list[tuple[int, TaskDraft]] = []
    for seed in islice(numbers, count * TRIES):
        try:
            draft = catalog.draft(name, level, seed)
        except ExhaustedError:
            break
        if catalog.finite(name) is not None or seeds.split_of_question(draft.key) is Split.TRAIN:
            found.append((seed, draft))
        if len(found) == count:
            break
    return found


def about(taskset: Taskset) -> str:
    """Returns the taskset's description: its own, or the first paragraph of its module."""
    if isinstance(taskset, Described):
        return taskset.about
    places = (place for rows in PLACES.values() for name, place in rows.items() if name == taskset.name)
    module = sys.modules.get(next(places, type(taskset).__module__).partition(":")[0])
    return " ".join(((module and module.__doc__) or "").partition("\n\n")[0].split())
