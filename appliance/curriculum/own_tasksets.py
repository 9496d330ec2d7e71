"""Reads the owner's tasksets in a data folder: `tasksets/NAME.json`, each as it was added.

Invariants: a file is complete or absent, and its rows match its digest; only the daemon writes here. Code that works
with tasks gets a catalog that includes them.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from appliance.curriculum.own_files import file_of, names_in
from curriculum.catalog import Catalog
from curriculum.contract.errors import UnknownTasksetError
from curriculum.names import OWN
from curriculum.own.taskset import OwnTaskset, own_taskset
from curriculum.registry import BUILT_IN


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
