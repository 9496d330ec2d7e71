"""The tasksets that a command may name, and which of their tasks a person may look at.

What always holds: no command shows a sealed task. Whoever has read one could write it into training data, or into a
prompt, and the evaluation that rests on it would measure memory.
"""

from __future__ import annotations

from pathlib import Path

import typer

from appliance.errors import AssayError, ExitCode, UsageError
from curriculum.catalog import Catalog
from curriculum.contract.task import Split
from curriculum.registry import BUILT_IN
from curriculum.seeds import split_of


def catalog_of(context: typer.Context, data: Path | None) -> Catalog:
    """Those of the code."""
    return BUILT_IN


def require_viewable(seed: int) -> int:
    """The seed. Raises AssayError (4) for a sealed one, SeedError for what is none."""
    if split_of(seed) is Split.SEALED:
        raise AssayError(
            f"seed {seed} is sealed: a question that was seen cannot measure what was learned",
            "seeds that leave 2 when divided by 4 are sealed; take another",
            ExitCode.REFUSED,
        )
    return seed


def levels_of(catalog: Catalog, name: str, level: int | None) -> list[int]:
    """That level, or all of the taskset's. Raises UnknownTasksetError, and UsageError where there is no such level."""
    count = catalog.named(name).level_count
    if level is not None and level >= count:
        raise UsageError(f"{name} has no level {level}", f"choose a level from 0 to {count - 1}")
    return list(range(count)) if level is None else [level]
