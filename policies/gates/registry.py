"""Registry of all gates, in the order in which a decision shows them. A new gate needs a module and a row here.

Invariants: every later release reads a file of version 5 unchanged. So a row added later may be absent from a file, and
no gate that `never_missing` names today is removed.
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
    """Creates the model class of a policy's `[gates]` table; if `complete`, gates with `never_missing` are required."""
    fields: dict[str, Any] = {
        gate.name: (gate.section, ...) if complete and gate.never_missing else (gate.section | None, None)
        for gate in registry
    }
    made = create_model("AskedGates", __base__=AskedGates, **fields)
    made.registry = registry
    return made
