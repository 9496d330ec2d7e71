"""Documents about checks."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from policies.statements import Page
from runtime.model import FrozenModel
from verifiers.checklists.assess import ListAssessment
from verifiers.contract.verdict import Ground, Outcome


class DraftedList(FrozenModel):
    list: dict[str, Any]
    """The checklist, as `assay check checklist --spec` reads it."""
    refused: tuple[str, ...]
    assessment: ListAssessment


class PairsSummary(FrozenModel):
    """Totals of a run over a file of pairs whose results are in another file."""

    pairs: int
    passed: int = Field(serialization_alias="pass")
    fail: int
    hack_suspected: int
    infra_error: int
    bad_spec: int
    checked_now: int
    seconds: float
    out: str


class PairResult(FrozenModel):
    """Result of one checked pair. The last fields are there with --evidence only."""

    id: str | int
    outcome: Literal[Outcome.PASS, Outcome.FAIL, Outcome.HACK_SUSPECTED, Outcome.INFRA_ERROR, "bad_spec"]
    reason: str
    seconds: float
    hint: str | None = None
    score: float | None = None
    ground: Ground | None = None
    evidence: dict[str, Any] | None = None
    verifier: str | None = None
    version: str | None = None
    tools: dict[str, str] | None = None
    isolation: str | None = None


class ValidationDocument(FrozenModel):
    """Page about a job's check that a person is asked to sign."""

    job: str
    content: str
    shown: str
    """Digest of the page."""
    page: Page
