"""Documents about sandboxes."""

from __future__ import annotations

from pydantic import RootModel

from runtime.broker import BoxLine, SnapshotLine
from runtime.conformance import CheckResult
from runtime.model import FrozenModel
from runtime.sandbox import CallResult, Usage


class RunDocument(CallResult):
    """Result of the code that ran."""

    usage: Usage


class KeptRun(RunDocument):
    snapshot: str | None
    """Name of the snapshot; None if the run failed."""


class SandboxesDocument(FrozenModel):
    boxes: tuple[BoxLine, ...]
    snapshots: tuple[SnapshotLine, ...]
    more: int
    """Sandboxes that are not listed."""


class FiguresDocument(RootModel[dict[str, float]]):
    """The broker's figures by name."""


class SweptDocument(FrozenModel):
    owners: int
    processes: int
    cgroups: int
    folders: int


class ConformanceDocument(FrozenModel):
    conforms: bool
    backends: dict[str, tuple[CheckResult, ...]]


class BenchDocument(RootModel[dict[str, str | bool | int | float | None]]):
    """Figures by name: milliseconds end in `_ms`, memory in `_mib`; `_p95` is the 95th percentile."""


class ForgottenSnapshots(FrozenModel):
    forgotten: tuple[str, ...]
