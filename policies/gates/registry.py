"""Every gate, in the order in which a decision shows them. Adding one is a module and a row here.

What always holds: a file of version 5 is read by every later release as it is. So a row that is added later may be left
out of a file, and none that `never_missing` names today is taken away.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from pydantic import create_model

from policies.gates import (
    approval,
    contamination,
    cost,
    drift,
    egress,
    evidence,
    freshness,
    hacks,
    improvement,
    integrity,
    non_regression,
    refusal,
    selftest,
    service,
)
from policies.gates.gate import AskedGates, Gate

GATES: tuple[Gate[Any], ...] = (
    integrity.GATE,
    freshness.GATE,
    selftest.GATE,
    contamination.GATE,
    improvement.GATE,
    evidence.GATE,
    non_regression.GATE,
    hacks.GATE,
    drift.GATE,
    egress.GATE,
    refusal.GATE,
    cost.GATE,
    service.GATE,
    approval.GATE,
)


@lru_cache
def gates_model(registry: tuple[Gate[Any], ...], *, complete: bool = True) -> type[AskedGates]:
    """The sections below `[gates]` as a type: those that may never be missing have to be there, if `complete`."""
    fields: dict[str, Any] = {
        gate.name: (gate.section, ...) if complete and gate.never_missing else (gate.section | None, None)
        for gate in registry
    }
    made = create_model("AskedGates", __base__=AskedGates, **fields)
    made.registry = registry
    return made
