"""What a check of a bundle found: records for whoever shows it."""

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
    """What the seal says; its signature holds, and it is about exactly these bytes."""

    key: str
    """Fingerprint."""
    known: bool
    """Whether it is the key that was given."""
    own: bool = False
    """Whether it is this machine's. If neither, anybody may have made it."""
    made_at: str
    solved_by: str
    model: str
    policy: str
    environment: str


class NotChecked(Record):
    """Something on which no pass rests."""

    what: str
    why: str


class BundleReport(Record):
    """What a check found. `ok` only when every byte is intact and the answer was verified again."""

    ok: bool
    form: Literal["folder", "file"] = "folder"
    manifest: str | None
    """SHA-256 of the manifest file; None where there is none to read."""
    files: tuple[CheckedFile, ...]
    seal: Sealed | None = None
    """None where there is none, or it does not hold: then `reasons` says so."""
    answer: str | None = None
    question: str | None = None
    spec: Spec | None = None
    solved_by: str = ""
    verdict_then: Verdict | None = None
    verdict_now: Verdict | None = None
    statement_then: tuple[StatementPart, ...] = ()
    """What the bundle says of itself."""
    statement_now: tuple[StatementPart, ...] = ()
    """What the verdict of this machine carries, and the words that were checked here."""
    mark: str = ""
    """Of `statement_now`."""
    made_with: dict[str, Any] = Field(default={})
    """As stated by the maker."""
    transcript: tuple[TranscriptEntry, ...] = Field(default=(), exclude=True)
    """For the page; it is not in the JSON, which is about the check."""
    nodes: int = 0
    """Of the transcript."""
    calls: int = 0
    """Of tools, in it."""
    reasons: tuple[str, ...]
    """Why it is not ok; empty where it is."""
    not_checked: tuple[NotChecked, ...] = ()
    notes: tuple[str, ...] = ()
    """What the machinery said while it worked."""

    @property
    def undecided(self) -> bool:
        """Whether everything else holds and only this machine's infrastructure kept it from a verdict."""
        broken = self.verdict_now is not None and self.verdict_now.outcome is Outcome.INFRA_ERROR
        return broken and len(self.reasons) == 1
