"""The verdict: the only thing in this product that may become a reward.

`infra_error` is about us, not about the submission: it is masked from training, may be retried, and is never 0 or 1.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from pydantic import BaseModel, ConfigDict, Field


class Outcome(StrEnum):
    PASS = "pass"  # noqa: S105 - a verdict, no password
    FAIL = "fail"
    HACK_SUSPECTED = "hack_suspected"
    INFRA_ERROR = "infra_error"


class Verdict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    outcome: Outcome
    score: float = Field(ge=0, le=1)
    """1 for `pass`; 0 for everything else, where only `fail` and `hack_suspected` mean it as a judgement."""
    reason: str
    """One sentence that a person understands."""
    evidence: dict[str, Any] = {}
    """What lets somebody else check the reason: the parsed forms, a witness, the values compared. JSON only."""
    verifier: str
    version: str
    seconds: float

    @property
    def passed(self) -> bool:
        return self.outcome is Outcome.PASS
