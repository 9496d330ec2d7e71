"""The report of a certification, and what it is about: a taskset in one version, by a digest of what it makes.

What always holds: a certificate speaks of the taskset that makes these very tasks; whoever changes what one makes has
another digest, and the certificate says nothing of that. Those of the tasksets of the code ship with it
(`certified.json`), and are compared with what the installed code makes before anything is trained on.
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
"""Seeds of each level that the digest is over."""


class AgentRate(FrozenModel):
    """How often one agent passed."""

    passed: int
    of: int
    bar: float
    """Of all its answers at most, or for the reference at least."""
    chance: float = 0.0
    """What a guess among the answers that there are is worth; it stands in for the bar where it is more."""

    @property
    def rate(self) -> float:
        return self.passed / self.of if self.of else 0.0


class Certificate(FrozenModel):
    taskset: str
    made: str
    """`version:digest` of what it makes."""
    seeds: int
    """Of each level."""
    tasks: int
    agents: dict[str, AgentRate] = Field(default_factory=dict)
    """The reference and those that do no work: each at its worst level."""
    faults: tuple[str, ...] = ()
    """Why it is not certified, in sentences."""
    seconds: float = 0.0

    @property
    def holds(self) -> bool:
        return not self.faults


Shipped = TypeAdapter(dict[str, str])


def made_by(catalog: Catalog, name: str, *, each: int = EACH) -> str:
    """`version:digest` of the tasks that a taskset makes of its first seeds, at all levels, and of the owner's packages
    that their worlds run; certificates are over `EACH` seeds. Raises UnknownTasksetError."""
    taskset = catalog.named(name)
    made: list[dict[str, Any]] = []
    for level in range(taskset.level_count):
        for seed in range(each):
            try:
                draft = catalog.draft(name, level, seed)
            except ExhaustedError:
                continue
            task = catalog.task_of(draft, name, level, seed)
            made.append(task.model_dump(mode="json", exclude=None if draft.world else {"world"}))
    if isinstance(taskset, RunsPackages) and taskset.packages:
        made.append({"packages": list(taskset.packages)})
    digest = hashlib.sha256(json.dumps(made, sort_keys=True).encode()).hexdigest()[:12]
    return f"{taskset.version}:{digest}"


@cache
def shipped() -> dict[str, str]:
    """By taskset of the code: which `version:digest` was certified when it was built."""
    return Shipped.validate_json((resources.files("curriculum.certification") / "certified.json").read_bytes())
