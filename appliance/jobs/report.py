"""Result of a bundle check, as records for display."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from appliance.jobs.layout import TranscriptEntry
from appliance.jobs.reading import CheckedFile
from appliance.records.record import Record
from verifiers.contract.statement import StatementPart
from verifiers.contract.verdict import Outcome, Verdict
from verifiers.registry.spec import Spec


class Sealed(Record):
    """Content of a bundle's seal whose signature is valid for exactly these bytes."""

    key: str
    """Fingerprint of the sealing key."""
    known: bool
    """True if it is the key that was given."""
    own: bool = False
    """True if it is this machine's key. If neither, anybody may have sealed the bundle."""
    made_at: str
    solved_by: str
    model: str
    policy: str
    environment: str


class NotChecked(Record):
    """A part of the bundle on which no pass rests."""

    what: str
    why: str


class BundleReport(Record):
    """Result of a bundle check. `ok` only if every byte is intact and the answer was verified again."""

    ok: bool
    form: Literal["folder", "file"] = "folder"
    manifest: str | None
    """SHA-256 of the manifest file; None if it is unreadable."""
    files: tuple[CheckedFile, ...]
    seal: Sealed | None = None
    """None if missing or invalid; `reasons` names an invalid one."""
    answer: str | None = None
    question: str | None = None
    spec: Spec | None = None
    solved_by: str = ""
    verdict_then: Verdict | None = None
    verdict_now: Verdict | None = None
    statement_then: tuple[StatementPart, ...] = ()
    """The bundle's own statement."""
    statement_now: tuple[StatementPart, ...] = ()
    """Statement that follows from this machine's verdict and the validations checked here."""
    mark: str = ""
    """Mark of `statement_now`."""
    made_with: dict[str, Any] = Field(default={})
    """Versions and lineage as stated by the maker."""
    transcript: tuple[TranscriptEntry, ...] = Field(default=(), exclude=True)
    """Transcript for the page; excluded from the JSON, which is about the check."""
    nodes: int = 0
    """Number of nodes in the transcript."""
    calls: int = 0
    """Number of tool calls in the transcript."""
    reasons: tuple[str, ...]
    """Reasons why the report is not ok; empty if it is."""
    not_checked: tuple[NotChecked, ...] = ()
    missing: str = ""
    """Plug-in that this machine lacks to decide the check; empty if none."""
    notes: tuple[str, ...] = ()
    """Notes of the checking machinery."""

    @property
    def undecided(self) -> bool:
        """True if an intact bundle has no new verdict only because of this machine: an infrastructure error, or a
        plug-in that it lacks."""
        broken = self.verdict_now is not None and self.verdict_now.outcome is Outcome.INFRA_ERROR
        return (broken or bool(self.missing)) and len(self.reasons) == 1
