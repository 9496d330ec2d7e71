"""Further messages for the screens of `assay tui`: machine load, curves, lineage, audit log."""

from __future__ import annotations

from pydantic import Field, JsonValue

from appliance.client.messages import CheckpointView
from runtime.model import FrozenModel


class GpuUse(FrozenModel):
    name: str
    busy: float | None
    """Load from 0 to 1; None if the driver does not report it."""
    used_bytes: int
    total_bytes: int


class ProcessUse(FrozenModel):
    """Load caused by one of the appliance's own processes."""

    name: str
    pid: int
    memory_bytes: int
    """Resident memory."""
    cpu_seconds: float
    """CPU time since its start."""


class MachineView(FrozenModel):
    """Load of the daemon's machine."""

    cores: int
    cpu: float | None
    """Busy share of all cores, from 0 to 1, since the previous request; None on the first one."""
    load: float
    """Mean number of running or waiting processes in the last minute."""
    memory_total: int
    memory_available: int
    disk_total: int
    """Size of the data folder's file system."""
    disk_free: int
    gpus: tuple[GpuUse, ...] = ()
    processes: tuple[ProcessUse, ...] = ()
    sandboxes: dict[str, float] | None = None
    """The broker's statistics; None if no broker answers."""


class CycleCurves(FrozenModel):
    """Figures of a cycle's training, step by step."""

    cycle: str
    steps: tuple[dict[str, float], ...]
    """In ascending order, each with its `step`."""


class ModelLineage(FrozenModel):
    models: tuple[CheckpointView, ...]
    """The model, its parent, and so on to the first one without a recorded parent."""
    cut: bool = False
    """True if more ancestors exist than were requested."""


class AuditLine(FrozenModel):
    """An entry of the audit log; only `assay audit verify` checks its signature."""

    number: int
    at: str
    kind: str
    what: dict[str, JsonValue] = Field(default_factory=dict)


class AuditBefore(FrozenModel):
    """Selects entries of the audit log."""

    before: int | None = Field(default=None, ge=0)
    """Only entries with a lower number."""
