"""Built-in tasksets and those of admitted distributions, imported on first use. `curriculum.names` lists them.

These functions make tasks from built-in tasksets only; code that also supports an owner's takes a `Catalog`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache

from common.plugins.table import OpenTable
from curriculum.catalog import Catalog
from curriculum.catalog import stable_random as stable_random
from curriculum.contract.taskset import Taskset
from curriculum.families.phrased import PhrasedTaskset, calculators
from curriculum.names import CALCULATORS as CALCULATORS
from curriculum.names import OUTSIDE, PLACES
from verifiers.contract.kinds import Lazy


class LazyDomain(Mapping[str, Taskset]):
    """Built-in tasksets of one domain by name. Listing them loads none; a look-up loads only its own."""

    def __init__(self, places: Mapping[str, str]) -> None:
        self._places = places

    def __getitem__(self, name: str) -> Taskset:
        place = self._places[name]
        return _calculators()[name] if name in CALCULATORS else Lazy[Taskset](place).load()

    def __contains__(self, name: object) -> bool:
        return name in self._places

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


@cache
def _calculators() -> dict[str, Taskset]:
    """Makes all calculator tasksets together: they know each other's operations."""
    families = (Lazy[PhrasedTaskset](place).load() for place in PLACES["calculator"].values())
    return {made.name: made for made in calculators(*families)}


DOMAINS: dict[str, Mapping[str, Taskset]] = {domain: LazyDomain(places) for domain, places in PLACES.items()}
DOMAINS[OUTSIDE] = OpenTable[Taskset]("tasksets", {})
BUILT_IN = Catalog(DOMAINS)
TASKSETS = BUILT_IN.tasksets
taskset_named = BUILT_IN.named
domain_of = BUILT_IN.domain_of
make_draft = BUILT_IN.draft
make_task = BUILT_IN.task
task_of = BUILT_IN.task_of
draft_of = BUILT_IN.draft_of
key_of = BUILT_IN.key_of
