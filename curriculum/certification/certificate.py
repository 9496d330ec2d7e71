"""Certification reports. A certificate is for one version of a taskset, identified by a digest of the tasks it makes.

Invariants: a certificate holds only for the taskset that makes exactly these tasks; any change of its output changes
the digest and voids the certificate. Those of built-in tasksets ship in `certified.json`, and are compared with the
installed code before anything is trained on.
"""

from __future__ import annotations

import hashlib
import json
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from pydantic import Field, TypeAdapter

from curriculum.contract.errors import ExhaustedError
from curriculum.contract.taskset import RunsPackages
from runtime.model import FrozenModel

if TYPE_CHECKING:
    from curriculum.catalog import Catalog

EACH = 4
"""Seeds per level that the digest covers."""


class AgentRate(FrozenModel):
    """Pass count of one of the certification's agents, with the limit that it is held to."""

    passed: int
    of: int
    bar: float
    """Highest pass rate allowed; for the reference, the lowest."""
    chance: float = 0.0
    """Pass rate of guessing one of few answers; replaces the bar if higher."""

    @property
    def rate(self) -> float:
        return self.passed / self.of if self.of else 0.0


class Certificate(FrozenModel):
    taskset: str
    """Name of the taskset, or `plugin:DISTRIBUTION`."""
    made: str
    """`version:digest` of the tasks that the taskset makes, or of a distribution's files."""
    seeds: int
    """Seeds per level."""
    tasks: int
    agents: dict[str, AgentRate] = Field(default_factory=dict)
    """Rates of the reference and of the agents that do no work, each at its worst level."""
    faults: tuple[str, ...] = ()
    """Reasons why the taskset is not certified, in sentences."""
    seconds: float = 0.0

    @property
    def holds(self) -> bool:
        return not self.faults


Shipped = TypeAdapter(dict[str, str])


def made_by(catalog: Catalog, name: str, *, each: int = EACH) -> str:
    """Returns `version:digest` of the tasks that a taskset makes. The digest covers the first `each` seeds of all
    levels (`EACH` in certificates), and the owner's packages that their worlds run. Raises UnknownTasksetError."""
    taskset = catalog.named(name)
    made: list[dict[str, Any]] = []
    for level in range(taskset.level_count):
        for seed in range(each):
            try:
                draft = catalog.draft(name, level, seed)
            except ExhaustedError:
                continue
            task = catalog.task_of(draft, name, level, seed)
            made.append(task.model_dump(mode="json", exclude={"topic"} if draft.world else {"topic", "world"}))
    if isinstance(taskset, RunsPackages) and taskset.packages:
        made.append({"packages": list(taskset.packages)})
    digest = hashlib.sha256(json.dumps(made, sort_keys=True).encode()).hexdigest()[:12]
    return f"{taskset.version}:{digest}"


@cache
def shipped() -> dict[str, str]:
    """Returns the certified `version:digest` of each built-in taskset."""
    return Shipped.validate_json((resources.files("curriculum.certification") / "certified.json").read_bytes())
