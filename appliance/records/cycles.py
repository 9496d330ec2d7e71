"""A cycle is one night, from the champion to a decision about a candidate."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Literal

from pydantic import Field

from appliance.records.record import Record

KEPT_ROLLOUTS = "kept_rollouts"
"""In a plan: the SHA-256 of the file of rollouts under way, and of the one before it."""


class CycleState(StrEnum):
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"
    """A person called it off."""
    SET_ASIDE = "set_aside"
    """The infrastructure died at it again and again; a person may have it tried once more."""

    @property
    def ended(self) -> bool:
        return self not in (CycleState.RUNNING, CycleState.SET_ASIDE)

    @property
    def rests(self) -> bool:
        """Whether nobody will work on it unless a person says so."""
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
