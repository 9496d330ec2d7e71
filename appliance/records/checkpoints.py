"""A checkpoint of the policy model is recorded as the ledger knows it."""

from __future__ import annotations

from typing import Literal

from appliance.records.record import Record

TrainingStage = Literal["warm_start", "stage", "training", "imported"]
"""What made a model: `stage` is a stage of a training that others followed."""


class Checkpoint(Record):
    """Is a complete, verified folder of weights. Its name is the SHA-256 of its manifest file."""

    manifest: str
    parent: str | None
    cycle: str
    stage: TrainingStage
    step: int
    recipe: str
    """Digest of the configuration that made it."""
    metrics: dict[str, float]
    folder: str
    """Relative to the data folder."""
    created: str
