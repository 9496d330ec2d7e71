"""A cycle is one night, from the champion to a decision about a candidate."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Literal

from pydantic import Field

from appliance.records.record import Record


class CycleState(StrEnum):
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"
    """A person called it off."""

    @property
    def ended(self) -> bool:
        return self is not CycleState.RUNNING


class Cycle(Record):
    """Is one night: from the champion to a decision about a candidate."""

    id: str
    kind: Literal["demo", "night", "evaluation", "training"]
    """An evaluation trains nothing: its candidate is in its plan. A training has stages there."""
    seed: int
    plan: dict[str, Any]
    """The settings in force, so that a resumed cycle goes on as it began."""
    phase: str
    """prepare, warm_start, training, evaluation, decision, done."""
    state: CycleState
    created: str
    updated: str
    seconds: dict[str, float] = Field(default_factory=dict)
    """Wall seconds by phase, summed over restarts."""
    failure: str = ""
