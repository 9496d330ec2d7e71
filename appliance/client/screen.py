"""What the screens of `assay tui` ask for beside the other messages: the machine, curves, lineage, the audit log."""

from __future__ import annotations

from pydantic import Field, JsonValue

from appliance.client.messages import CheckpointView
from runtime.model import FrozenModel


class GpuUse(FrozenModel):
    name: str
    busy: float | None
    """From 0 to 1; None where the driver does not say."""
    used_bytes: int
    total_bytes: int


class ProcessUse(FrozenModel):
    """One of the appliance's own processes."""

    name: str
    pid: int
    memory_bytes: int
    """Resident."""
    cpu_seconds: float
    """Since its start."""


class MachineView(FrozenModel):
    """How busy the daemon's machine is."""

    cores: int
    cpu: float | None
    """Busy share of all cores, from 0 to 1, since somebody last asked; None at the first time."""
    load: float
    """Mean number of processes that ran or waited in the last minute."""
    memory_total: int
    memory_available: int
    disk_total: int
    """Of the file system that the data folder lies on."""
    disk_free: int
    gpus: tuple[GpuUse, ...] = ()
    processes: tuple[ProcessUse, ...] = ()
    sandboxes: dict[str, float] | None = None
    """The broker's own figures; None where no broker answers."""


class CycleCurves(FrozenModel):
    """Figures of a cycle's training, step by step."""

    cycle: str
    steps: tuple[dict[str, float], ...]
    """Ascending, each with `step`."""


class ModelLineage(FrozenModel):
    models: tuple[CheckpointView, ...]
    """The model asked about, its parent, and so on; the first one that has no parent on record is the last."""
    cut: bool = False
    """Whether there are more than were asked for."""


class AuditLine(FrozenModel):
    """An entry of the audit log; its signature is checked by `assay audit verify`, not here."""

    number: int
    at: str
    kind: str
    what: dict[str, JsonValue] = Field(default_factory=dict)
