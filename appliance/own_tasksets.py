"""The owner's tasksets in a data folder: `tasksets/NAME.json`, each as it was added.

What always holds: a file is there whole or not at all, and its rows are those that its digest names; the daemon alone
writes here. Whoever works with tasks is handed a catalog that has them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from curriculum.catalog import Catalog
from curriculum.contract.errors import UnknownTasksetError
from curriculum.own.taskset import NAME, OWN, OwnTaskset, own_taskset
from curriculum.registry import BUILT_IN

FOLDER = "tasksets"


def file_of(data: Path, name: str) -> Path:
    """Where that one lies, named without `own/`. Raises UnknownTasksetError for what is no name."""
    if not re.fullmatch(NAME, name):
        raise UnknownTasksetError(
            f"{name!r} is no name of a taskset", hint="write it in small letters, digits and _, a letter first"
        )
    return data / FOLDER / f"{name}.json"


def names_in(data: Path) -> list[str]:
    """Lists them, with `own/`. Raises OSError."""
    folder = data / FOLDER
    return sorted(f"{OWN}/{path.stem}" for path in folder.glob("*.json")) if folder.is_dir() else []


def read_own(data: Path, name: str) -> OwnTaskset:
    """The taskset `own/...`. Raises CurriculumError where there is none or it is not what was added, OSError."""
    short = name.removeprefix(f"{OWN}/")
    try:
        content = file_of(data, short).read_bytes()
    except FileNotFoundError:
        raise UnknownTasksetError(
            f"there is no taskset {name!r}", hint="`assay curriculum ls --domain own` lists the owner's"
        ) from None
    return own_taskset(content, short)


def catalog_in(data: Path, names: Iterable[str] | None = None) -> Catalog:
    """The tasksets of the code, and the owner's: all of them, or those among `names`. Raises as `read_own` does."""
    wanted = names_in(data) if names is None else [name for name in names if name.startswith(f"{OWN}/")]
    return BUILT_IN.with_domain(OWN, [read_own(data, name) for name in wanted]) if wanted else BUILT_IN
