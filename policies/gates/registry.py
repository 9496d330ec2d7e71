"""Registry of all gates, in the order in which a decision shows them. A new gate needs a module and a row here.

Invariants: every later release reads a file of version 1 unchanged. So a row added later may be absent from a file, and
no gate that `never_missing` names today is removed.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from pydantic import create_model

from common.plugins.table import OpenTable
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
    retention,
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
    retention.GATE,
    hacks.GATE,
    drift.GATE,
    egress.GATE,
    refusal.GATE,
    cost.GATE,
    service.GATE,
    approval.GATE,
)

_TABLE: OpenTable[Gate[Any]] = OpenTable("gates", {gate.name: gate for gate in GATES}, by_reference=True)


def gates_from_outside(sections: Iterable[str]) -> dict[str, Gate[Any]]:
    """Returns the gates of admitted distributions that a policy file asks for, by its section: `DISTRIBUTION/NAME` or
    `module:object`. Raises PluginError."""
    return {name: _TABLE[name] for name in sections if name not in _TABLE.data and name in _TABLE}


@lru_cache
def gates_model(registry: tuple[Gate[Any], ...]) -> type[AskedGates]:
    """Returns the type of the `[gates]` table. Gates with `never_missing` are required."""
    fields: dict[str, Any] = {
        gate.name: (gate.section, ...) if gate.never_missing else (gate.section | None, None) for gate in registry
    }
    made = create_model("AskedGates", __base__=AskedGates, **fields)
    made.registry = registry
    return made
