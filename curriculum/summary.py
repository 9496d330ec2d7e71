"""Says of a taskset what a person wants to know before using it. Pure; everything follows from its table and drafts."""

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
"""Tasks of each level that are looked at for the kinds of checks."""
TRIES = 64
"""Seeds for one task: the question of every second one is training's."""


def summary_of(catalog: Catalog, name: str) -> TasksetSummary:
    """Raises UnknownTasksetError."""
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
    """The first `count` training tasks of that level; none where a finite taskset has none. Raises as
    `Catalog.draft` does otherwise."""
    return [draft for _, draft in training_drafts(catalog, name, level, count, seeds.seeds(Split.TRAIN))]


def training_drafts(
    catalog: Catalog, name: str, level: int, count: int, numbers: Iterator[int]
) -> list[tuple[int, TaskDraft]]:
    """The first `count` of these seeds of training whose question is training's too, each with its draft; fewer where
    the level has no more. Raises as `Catalog.draft` does otherwise."""
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
    """What it asks for: its own words, or the first paragraph of the file that makes it."""
    if isinstance(taskset, Described):
        return taskset.about
    places = (place for rows in PLACES.values() for name, place in rows.items() if name == taskset.name)
    module = sys.modules.get(next(places, "").partition(":")[0])
    return " ".join(((module and module.__doc__) or "").partition("\n\n")[0].split())
