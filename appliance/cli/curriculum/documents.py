"""Documents about tasks whose parts are large to load; imported only when one is printed or described."""

from __future__ import annotations

from typing import Any

from pydantic import computed_field

from appliance.curriculum.reverify import Reverification
from appliance.curriculum.separation_audit import SeparationReport
from curriculum.certification.certificate import Certificate
from curriculum.contract.task import TaskMessage
from curriculum.taskset_summary import TasksetSummary
from runtime.model import FrozenModel


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


class LearnableTaskset(TasksetSummary):
    """A taskset with what `assay curriculum measure` found of a model; None for a taskset that it did not ask."""

    attempts: int
    """Judged attempts."""
    passes: float | None
    """Share of the attempts that passed."""
    learnable: float | None
    """Mean probability, over measured topics and levels, that the pass rate lies between .2 and .8."""


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
