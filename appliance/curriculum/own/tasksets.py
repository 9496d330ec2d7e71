"""The owner's tasksets in a data folder: `tasksets/NAME.json`, each as it was added.

What always holds: a file is there whole or not at all, and its rows are those that its digest names; the daemon alone
writes here. Whoever works with tasks is handed a catalog that has them.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from appliance.curriculum.own.files import file_of, names_in
from curriculum.catalog import Catalog
from curriculum.contract.errors import UnknownTasksetError
from curriculum.names import OWN
from curriculum.own.taskset import OwnTaskset, own_taskset
from curriculum.registry import BUILT_IN


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
