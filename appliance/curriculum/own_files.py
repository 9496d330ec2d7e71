"""Paths of the owner's tasksets in a data folder, `tasksets/NAME.json`; nothing is read here."""

from __future__ import annotations

import re
from pathlib import Path

from curriculum.contract.errors import UnknownTasksetError
from curriculum.names import NAME, OWN

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
