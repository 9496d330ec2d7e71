"""Documents about tasks."""

from __future__ import annotations

from typing import Any

from pydantic import computed_field

from appliance.curriculum.reverify import Reverification
from appliance.curriculum.separation_audit import SeparationReport
from curriculum.certification.certificate import Certificate
from curriculum.contract.task import TaskMessage
from runtime.model import FrozenModel


class RefusedRow(FrozenModel):
    origin: str
    reason: str


class AddedRows(FrozenModel):
    name: str
    """Name of the taskset."""
    kept: bool
    accepted: int
    kinds: dict[str, int]
    splits: dict[str, int]
    refused: tuple[RefusedRow, ...]


class CollectedDocument(FrozenModel):
    taken: dict[str, str]
    """Taskset by source of the task."""
    refused: tuple[RefusedRow, ...]


class SampledTask(FrozenModel):
    """A task as the model sees it."""

    id: str
    taskset: str
    level: int
    seed: int
    split: str
    topic: str
    messages: tuple[TaskMessage, ...]
    form: str
    tools: tuple[str, ...]
    files: dict[str, str]
    environment: str
    turns: int | None
    tokens: int | None
    provenance: str


class AnsweredTask(SampledTask):
    """A task with what the model never sees."""

    spec: dict[str, Any]
    answer: str
    key: str
    world: dict[str, Any]


class SeparationDocument(SeparationReport):
    @computed_field  # type: ignore[prop-decorator]
    @property
    def clean(self) -> bool:
        """True if no training data is a copy of an evaluation question."""
        return super().clean


class CertificateDocument(Certificate):
    signed: str
    """Outcome of signing the certificate into the audit log."""

    @computed_field  # type: ignore[prop-decorator]
    @property
    def holds(self) -> bool:
        return super().holds


class ReverifiedDocument(Reverification):
    @computed_field  # type: ignore[prop-decorator]
    @property
    def same(self) -> bool:
        return super().same


class HarborFolder(FrozenModel):
    name: str
    files: int
    judged_by: tuple[str, ...]
    foreign: bool
    """True if its score is a foreign reward and not a verdict."""
    solution: bool
    notes: tuple[str, ...]


class ExportedTask(FrozenModel):
    folder: str
    topic: str
    level: int


class InstalledAdapter(FrozenModel):
    name: str
    packages: int
    mib: int
    folder: str
