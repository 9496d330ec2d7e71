"""What the control API says of work of the owner's that may become tasks."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from appliance.client.connection import ApiConnection
from appliance.client.messages import OwnTasksetView
from curriculum.own.rows import OwnRow
from runtime.model import FrozenModel

JOBS: Literal["jobs"] = "jobs"
SESSIONS: Literal["sessions"] = "sessions"


class TaskCandidate(FrozenModel):
    """A row that may become a task of `own/jobs` or `own/sessions`."""

    taskset: str
    row: OwnRow


class CollectedRows(FrozenModel):
    """Which of the daemon's candidates were taken, by key, and why others were not. What a row says comes from its own
    records and from nobody who asks."""

    taskset: Literal["jobs", "sessions"]
    keys: tuple[str, ...] = Field(max_length=10_000)
    refused: dict[str, str] = Field(default_factory=dict, max_length=10_000)
    """Reasons by key."""


class OwnTasksClient(ApiConnection):
    """The part of the control API that collects tasks."""

    def candidates(self) -> list[TaskCandidate]:
        return self.get("/v1/own/candidates", list[TaskCandidate])

    def collect(self, collected: CollectedRows) -> OwnTasksetView:
        return self.post("/v1/own/collected", collected, OwnTasksetView)
