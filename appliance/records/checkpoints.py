"""Checkpoints of the policy model, as recorded in the ledger."""

from __future__ import annotations

from typing import Literal

from appliance.records.record import Record

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
