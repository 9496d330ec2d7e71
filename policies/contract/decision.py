"""Records of the policy's decisions and keys, and times in ISO 8601. Plain data, no cryptography."""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime
from enum import StrEnum
from typing import Literal

from pydantic import ConfigDict, Field, field_validator

from common.bounded_models import FirstErrorModel


class PolicyRecord(FirstErrorModel):
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
        """Returns the decision's SHA-256 over canonical JSON: sorted keys, no white space, UTF-8, Python's numbers."""
        value = json.loads(self.model_dump_json())
        text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
        return hashlib.sha256(text.encode()).hexdigest()


NAME = r"^[A-Za-z0-9][A-Za-z0-9._@-]{0,63}$"


class KeyStatement(PolicyRecord):
    """Signed statement that admits or revokes a key."""

    format: Literal["assay-key-1"] = "assay-key-1"
    action: Literal["admit", "revoke"]
    person: str = Field(pattern=NAME)
    key: str
    """`ssh-ed25519 AAAA...`"""
    reason: str = Field(default="", max_length=500)
    at: str
    """UTC, ISO 8601: the key's time of admission or revocation."""

    @field_validator("at")
    @classmethod
    def _require_time(cls, at: str) -> str:
        moment(at)
        return at


class KnownKey(PolicyRecord):
    person: str
    key: str
    fingerprint: str
    admitted_at: str
    admitted_by: tuple[str, ...]
    """Names of persons; empty for the first key, which was trusted on first use."""
    vouched: bool = False
    """True if the machine's owner vouched that this is another person."""
    voices: int = 0
    """Number of independent persons that the policy then required, and who admitted the key."""
    revoked_at: str = ""
    revoked_by: str = ""
    reason: str = ""

    @property
    def valid(self) -> bool:
        return not self.revoked_at


def moment(text: str) -> datetime:
    """Parses an ISO 8601 time into UTC. Raises ValueError, OverflowError."""
    found = datetime.fromisoformat(text)
    return found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)


def hours_between(earlier: str, later: str) -> float:
    """Returns the hours from `earlier` to `later`, negative if reversed. Raises ValueError for an invalid time."""
    return (moment(later) - moment(earlier)).total_seconds() / 3600
