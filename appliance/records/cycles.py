"""Cycles: one run each, from the champion to a decision about a candidate."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Literal

from pydantic import Field

from appliance.records.record import Record

KEPT_ROLLOUTS = "kept_rollouts"
"""Plan key: SHA-256 of the file with unfinished rollouts, and of the one before it."""
SEALED = "sealed"
"""Plan key: digest of the sealed set. With it the exam is fixed: tasksets, questions and, if one serves, champion."""


class CycleState(StrEnum):
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"
    """Cancelled by a person."""
    SET_ASIDE = "set_aside"
    """Parked after repeated infrastructure deaths; a person may retry it."""

    @property
    def ended(self) -> bool:
        return self not in (CycleState.RUNNING, CycleState.SET_ASIDE)

    @property
    def rests(self) -> bool:
        """True if nobody will work on the cycle unless a person asks for it."""
        return self is not CycleState.RUNNING


class Cycle(Record):
    """One run from the champion to a decision about a candidate."""

    id: str
    kind: Literal["demo", "night", "evaluation", "training"]
    """Kind of cycle. An evaluation trains nothing: its plan names the candidate. A training has stages in its plan."""
    seed: int
    plan: dict[str, Any]
    """Settings in force at the start, so that a resumed cycle continues unchanged."""
    phase: str
    """Current phase: prepare, warm_start, training, evaluation, decision, done."""
    state: CycleState
    created: str
    updated: str
    seconds: dict[str, float] = Field(default_factory=dict)
    """Wall seconds by phase, summed over restarts."""
    failure: str = ""


CORE_KINDS = frozenset(
    {"broker", "canary", "curriculum", "cycle", "daemon", "gateway", "governance", "report", "schedule", "worker"}
)
"""Kinds of events that only the daemon writes: a worker's text never looks like a person's or the core's act."""
SEPARATION = "separation"
"""Kind of the event that counts removed copies of held-out questions: figures by `door/check`."""


class Event(Record):
    """One line of progress, for people and the TUI; never acted on."""

    kind: str
    text: str
    figures: dict[str, float] = Field(default_factory=dict)
    created: str


TrainingStage = Literal["warm_start", "stage", "training", "imported"]
"""Origin of a model: `stage` is a stage of a training that later stages followed."""


class Checkpoint(Record):
    """A complete, verified folder of weights, named by the SHA-256 of its manifest file."""

    manifest: str
    parent: str | None
    cycle: str
    stage: TrainingStage
    step: int
    recipe: str
    """Digest of the configuration that produced it."""
    metrics: dict[str, float]
    folder: str
    """Path relative to the data folder."""
    created: str
