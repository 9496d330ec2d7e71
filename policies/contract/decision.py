"""The decision about a candidate checkpoint, and the findings of the gates that it rests on."""

from __future__ import annotations

import hashlib
import json
from enum import StrEnum

from pydantic import BaseModel, ConfigDict


class PolicyRecord(BaseModel):
    """A frozen record."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class GateOutcome(StrEnum):
    PASSED = "passed"
    FAILED = "failed"
    UNDECIDED = "undecided"


class GateFinding(PolicyRecord):
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


class Decision(PolicyRecord):
    """Every gate's finding, and what follows. People sign the digest of this record."""

    id: str
    candidate: str
    """Manifest digest of the candidate checkpoint."""
    champion: str | None
    evaluation: str
    """Id of the evaluation that it rests on."""
    policy: str
    """Digest of the policy file that was in force."""
    outcome: DecisionOutcome
    findings: tuple[GateFinding, ...]
    reason: str
    would_change: str
    made_at: str
    """UTC, ISO 8601; comes in as an argument."""

    def digest(self) -> str:
        """SHA-256 of the canonical JSON: sorted keys, no white space, UTF-8; numbers as Python writes them."""
        value = json.loads(self.model_dump_json())
        text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
        return hashlib.sha256(text.encode()).hexdigest()

    def digests(self) -> tuple[str, str]:
        """Gives that digest, and the one that earlier versions had people sign: of the JSON with its fields as they
        stand here. A statement on either is on this very decision."""
        return self.digest(), hashlib.sha256(self.model_dump_json().encode()).hexdigest()
