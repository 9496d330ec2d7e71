"""Says of a family of tasks that it has nothing new to ask, so that the others have the rest of its share."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from appliance.worker.progress import CycleProgress
from curriculum.catalog import Catalog
from curriculum.contract.task import Split


def say_exhausted(progress: CycleProgress, catalog: Catalog, name: str, exclude: AbstractSet[str]) -> None:
    """Warns once a night, with how many training rows a family of given ones has. `exclude` is what is not asked."""
    finite = catalog.finite(name)
    rows = frozenset() if finite is None else finite.keys(Split.TRAIN)
    of = f" ({len(rows - exclude)} of its {len(rows)} training rows)" if rows else ""
    text = f"{name} has too little that recent nights did not ask{of}: the rest of its share goes to other families"
    progress.say_once("warning", text)
