"""Messages about the owner's work that may become tasks: candidates and collected rows."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from curriculum.own.rows import OwnRow
from runtime.model import FrozenModel

JOBS: Literal["jobs"] = "jobs"
SESSIONS: Literal["sessions"] = "sessions"


class TaskCandidate(FrozenModel):
    """A row that may become a task of `own/jobs` or `own/sessions`."""

    taskset: str
    row: OwnRow


class CollectedRows(FrozenModel):
    """Keys of the candidates accepted as tasks, and reasons for the refused ones. Row contents always come from the
    daemon's own records, never from the caller."""

    taskset: Literal["jobs", "sessions"]
    keys: tuple[str, ...] = Field(max_length=10_000)
    refused: dict[str, str] = Field(default_factory=dict, max_length=10_000)
    """Reasons by key."""
