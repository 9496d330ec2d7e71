"""Tasksets that a command may name, and tasks that a person may see.

Invariants: no command shows a sealed task, neither one of a sealed seed nor one whose question belongs to the sealed
sets. A person who has read it could put it into training data or a prompt, and the evaluation would measure memory.
"""

from __future__ import annotations

import typer

from appliance.cli.shell.options import data_folder
from appliance.curriculum.own_tasksets import catalog_in
from appliance.errors import AssayError, ExitCode, UsageError
from curriculum.catalog import Catalog
from curriculum.contract.task import Split
from curriculum.contract.taskset import TaskDraft
from curriculum.registry import BUILT_IN
from curriculum.sealed import belongs, is_written
from curriculum.seeds import split_of


def catalog_of() -> Catalog:
    """Returns the built-in tasksets and, if this user may read the data folder, the owner's."""
    try:
        return catalog_in(data_folder())
    except PermissionError:
        typer.echo("skipping the owner's tasksets: the data folder belongs to another user", err=True)
        return BUILT_IN


def viewable(catalog: Catalog, name: str, level: int, seed: int) -> TaskDraft:
    """Returns the draft of a seed that a person may see. Raises AssayError (4) for a sealed seed or question, SeedError
    for an invalid seed, and as `Catalog.draft` does."""
    if split_of(seed) is Split.SEALED:
        raise AssayError(
            f"seed {seed} is sealed: a question that a person saw cannot measure learning",
            "choose another seed; those with remainder 2 modulo 4 are sealed",
            ExitCode.REFUSED,
        )
    draft = catalog.draft(name, level, seed)
    if belongs(catalog, draft.key, name, Split.SEALED) and not is_written(name, catalog):
        raise AssayError(
            f"seed {seed} at level {level} is sealed: a question that a person saw cannot measure learning",
            "choose another seed, or omit --seed; a quarter of all questions is sealed",
            ExitCode.REFUSED,
        )
    return draft


def levels_of(catalog: Catalog, name: str, level: int | None) -> list[int]:
    """Returns the given level, or all levels of the taskset. Raises UnknownTasksetError, and UsageError for an unknown
    level."""
    count = catalog.named(name).level_count
    if level is not None and level >= count:
        raise UsageError(f"{name} has no level {level}", f"choose a level from 0 to {count - 1}")
    return list(range(count)) if level is None else [level]
