"""Decision about a candidate checkpoint, and the gate findings behind it."""

from __future__ import annotations

import hashlib
import json
from enum import StrEnum

from pydantic import BaseModel, ConfigDict


class PolicyRecord(BaseModel):
    """Frozen pydantic record that forbids unknown fields."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class GateOutcome(StrEnum):
    PASSED = "passed"
    FAILED = "failed"
    UNDECIDED = "undecided"


class GateFinding(PolicyRecord):
    """Finding of one gate: outcome, figure and reason. Figures are in points (of 100) unless `unit` differs."""

    gate: str
    outcome: GateOutcome
    figure: float | None
    low: float | None = None
    high: float | None = None
    threshold: float | None = None
    unit: str = "points"
    reason: str
    would_change: str = ""
    """Sentence on what would have made this gate pass; empty if it passed."""


class DecisionOutcome(StrEnum):
    PROMOTE = "promote"
    HOLD = "hold"
    REJECT = "reject"
    QUARANTINE = "quarantine"


class Decision(PolicyRecord):
    """Promotion decision with every gate's finding. People sign this record's digest."""

    id: str
    candidate: str
    """Manifest digest of the candidate checkpoint."""
    champion: str | None
    evaluation: str
    """Id of the evaluation that the decision rests on."""
    policy: str
    """Digest of the policy file in force."""
    outcome: DecisionOutcome
    findings: tuple[GateFinding, ...]
    reason: str
    would_change: str
    made_at: str
    """UTC, ISO 8601; passed in by the caller."""

    def digest(self) -> str:
        """Returns the decision's SHA-256 over canonical JSON: sorted keys, no white space, UTF-8, numbers as Python
        writes them."""
        value = json.loads(self.model_dump_json())
        text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
        return hashlib.sha256(text.encode()).hexdigest()
