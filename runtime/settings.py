"""What the runtime has to be told: where it may write, what it may use. All of it has a value that works."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from runtime.sandbox import Limits


class RuntimeSettings(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    state_dir: Path
    """Belongs to the runtime alone: everything in it is removed when its owner is gone."""
    root_dir: Path
    """Where guest roots are built and kept; safe to delete while no sandbox runs."""
    runsc: str | None = None
    """Path of runsc; None looks for it on PATH and in the usual places."""
    python: str | None = None
    """The interpreter that guests get; None takes the distribution's /usr/bin/python3."""
    limits: Limits = Field(default_factory=Limits)
    shared_workers: int = Field(1, ge=1)
    """Interpreters for pure snippets; one more is kept ready to take over."""
    slice_seconds: float = Field(0.25, gt=0)
    """How long a pure snippet may hold a shared interpreter before it gets a process of its own."""
    process_children: int = Field(4, ge=1)
    """Processes forked ahead of need in the sandbox of the process tier."""
    process_sessions: int = Field(64, ge=1)
    """Sessions of the process tier alive at once; more wait."""
    ready_sandboxes: int = Field(1, ge=0)
    """Sandboxes kept started for sessions that will need one of their own; the first such session starts the habit."""
    sandboxes: int = Field(8, ge=1)
    """Sandboxes of their own alive at once; more sessions wait."""
