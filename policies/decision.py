"""The decision about a candidate checkpoint, and the findings of the gates that it rests on."""

from __future__ import annotations

import hashlib
from enum import StrEnum

from pydantic import BaseModel, ConfigDict


class Record(BaseModel):
    """A frozen record with a digest over its canonical JSON (sorted keys, no white space, UTF-8)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    def digest(self) -> str:
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()


class GateOutcome(StrEnum):
    PASSED = "passed"
    FAILED = "failed"
    UNDECIDED = "undecided"


class Finding(Record):
    """What one gate saw. Figures are in points (of 100) unless `unit` says otherwise."""

    gate: str
    outcome: GateOutcome
    figure: float | None
    low: float | None = None
    high: float | None = None
    threshold: float | None = None
    unit: str = "points"
    reason: str
    would_change: str = ""
    """What would have made this gate pass, in a sentence; empty when it passed."""


class DecisionOutcome(StrEnum):
    PROMOTE = "promote"
    HOLD = "hold"
    REJECT = "reject"
    QUARANTINE = "quarantine"


class Decision(Record):
    """Every gate's finding, and what follows. Approvals sign the digest of this record."""

    id: str
    candidate: str
    """Manifest digest of the candidate checkpoint."""
    champion: str | None
    evaluation: str
    """Id of the evaluation that it rests on."""
    policy: str
    """Digest of the policy file that was in force."""
    outcome: DecisionOutcome
    findings: tuple[Finding, ...]
    reason: str
    would_change: str
    made_at: str
    """UTC, ISO 8601; comes in as an argument."""
