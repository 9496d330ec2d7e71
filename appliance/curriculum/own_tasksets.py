"""The owner's tasksets in a data folder, `tasksets/NAME.json`: their paths, and each as it was added.

Invariants: a file is complete or absent, and its rows match its digest; only the daemon writes here. Code that works
with tasks gets a catalog that includes them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from curriculum.catalog import Catalog
from curriculum.contract.errors import UnknownTasksetError
from curriculum.names import NAME, OWN
from curriculum.own.taskset import OwnTaskset, own_taskset
from curriculum.registry import BUILT_IN

FOLDER = "tasksets"


def file_of(data: Path, name: str) -> Path:
    """Returns the path of an owner's taskset in the data folder; `name` is without `own/`. Raises UnknownTasksetError
    for an invalid name."""
    if not re.fullmatch(NAME, name):
        raise UnknownTasksetError(
            f"invalid taskset name {name!r}", hint="use lowercase letters, digits and _, starting with a letter"
        )
    return data / FOLDER / f"{name}.json"


def names_in(data: Path) -> list[str]:
    """Returns the names of the owner's tasksets in a data folder, each with `own/`, sorted. Raises OSError."""
    folder = data / FOLDER
    return sorted(f"{OWN}/{path.stem}" for path in folder.glob("*.json")) if folder.is_dir() else []


def read_own(data: Path, name: str) -> OwnTaskset:
    """Reads the owner's taskset `own/...` from the data folder. Raises CurriculumError if it is missing or changed,
    OSError."""
    short = name.removeprefix(f"{OWN}/")
    try:
        content = file_of(data, short).read_bytes()
    except FileNotFoundError:
        raise UnknownTasksetError(
            f"no such taskset: {name!r}", hint="`assay curriculum ls --domain own` lists the owner's"
        ) from None
    return own_taskset(content, short)


def catalog_in(data: Path, names: Iterable[str] | None = None) -> Catalog:
    """Returns the catalog of built-in tasksets and the owner's, all or those in `names`. Raises as `read_own`."""
    wanted = names_in(data) if names is None else [name for name in names if name.startswith(f"{OWN}/")]
    return BUILT_IN.with_domain(OWN, [read_own(data, name) for name in wanted]) if wanted else BUILT_IN
