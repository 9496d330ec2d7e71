"""Verdict: the only value in this product that may become a reward.

`infra_error` concerns the infrastructure, not the submission: it is masked from training, may be retried, and is never
0 or 1. Undecided is never a pass: `unknown`, `timeout` and `memory` are failures with names of their own.
"""

from __future__ import annotations

import math
from enum import StrEnum
from typing import Any, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from common.bounded_models import FirstErrorModel

FOREIGN_REWARD = "foreign_reward"
"""Evidence key for the score of a third-party program."""

ALARM = "alarm"
"""Evidence key for a sentence that the machine's owner must see as an event, not in a verdict alone."""


class Outcome(StrEnum):
    PASS = "pass"  # noqa: S105 - a verdict, no password
    FAIL = "fail"
    HACK_SUSPECTED = "hack_suspected"
    INFRA_ERROR = "infra_error"


class Ground(StrEnum):
    """Basis on which a verdict's outcome rests."""

    PROVED = "proved"
    """Pass: by proof, or by exact computation."""
    TESTED = "tested"
    """Pass: every test, item or sample held. Evidence, not proof."""
    REFUTED = "refuted"
    """Fail: by a witness, a counterexample, a failing input or item."""
    UNREADABLE = "unreadable"
    """Fail: does not parse, or is not exactly one answer."""
    UNFINISHED = "unfinished"
    """Fail: leaves the work to the verifier, or is not in the requested form."""
    ABSTAINED = "abstained"
    """Fail: admits not knowing, which the spec rates above a wrong answer."""
    UNKNOWN = "unknown"
    """Fail: neither proved nor refuted."""
    TIMEOUT = "timeout"
    """Fail: the submission itself ran out of time."""
    MEMORY = "memory"
    """Fail: the submission itself ran out of memory."""
    FORBIDDEN = "forbidden"
    """Fail or hack_suspected: contains something that no honest submission needs."""
    BROKEN = "broken"
    """Infra_error: nothing is known about the submission."""


class Verdict(FirstErrorModel):
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    outcome: Outcome
    score: float = Field(ge=0, le=1)
    """1 for `pass`, unless the spec gives partial credit; 0 otherwise, which is a judgement only for `fail` and
    `hack_suspected`. An abstention that the spec allows fails with a score of its own."""
    reason: str
    """One sentence for people."""
    ground: Ground | None = None
    """Basis; None only in verdicts recorded before the field existed."""
    evidence: dict[str, Any] = Field(default_factory=dict)
    """JSON that lets others check the reason: the parsed forms, a witness, the values compared."""
    verifier: str
    version: str
    """Verifier version: changes whenever the same input might get another verdict."""
    tools: dict[str, str] = Field(default_factory=dict)
    """Name and version of every tool that affected the verdict."""
    isolation: str = ""
    """Isolation of the submission: `nsjail`, `gvisor`, or `process` if it confined itself."""
    seconds: float

    @property
    def passed(self) -> bool:
        return self.outcome is Outcome.PASS

    @property
    def foreign_reward(self) -> float | None:
        """Score from 0 to 1 of a third-party program, or None. It affects neither the outcome nor the score, so no
        training or promotion rests on it."""
        found = self.evidence.get(FOREIGN_REWARD)
        if isinstance(found, bool) or not isinstance(found, int | float) or not math.isfinite(found):
            return None
        return float(found) if 0 <= found <= 1 else None


class Judgement(NamedTuple):
    """Result of a verifier before it becomes a verdict. The basis determines the outcome."""

    ground: Ground
    reason: str
    evidence: dict[str, Any]
    suspected: bool = False
    """True if it contains something that no honest submission has."""
    isolation: str = ""

    @property
    def outcome(self) -> Outcome:
        if self.suspected:
            return Outcome.HACK_SUSPECTED
        if self.ground is Ground.BROKEN:
            return Outcome.INFRA_ERROR
        return Outcome.PASS if self.ground in (Ground.PROVED, Ground.TESTED) else Outcome.FAIL

    def noting(self, **evidence: Any) -> Judgement:
        return self._replace(evidence=self.evidence | evidence)

    def verdict(self, verifier: str, version: str, *, score: float | None = None, **more: Any) -> Verdict:
        """Builds the verdict of this judgement. `score` is for partial credit; `more` has tools, and seconds unless the
        worker counts them."""
        outcome = self.outcome
        return Verdict(
            outcome=outcome,
            score=float(outcome is Outcome.PASS) if score is None else score,
            reason=self.reason,
            ground=self.ground,
            evidence=self.evidence,
            verifier=verifier,
            version=version,
            isolation=self.isolation,
            **{"seconds": 0.0, **more},
        )


def judged(ground: Ground, reason: str, evidence: dict[str, object], verifier: str, version: str) -> Verdict:
    """Builds a verdict about a submission that could be judged."""
    return Judgement(ground, reason, evidence).verdict(verifier, version)


class SpecProblem(BaseModel):
    """Replaces a verdict if the spec cannot decide anything; says nothing about the submission."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    message: str
    hint: str = ""

    @property
    def reason(self) -> str:
        return f"the spec cannot be used: {self.message}"

    def as_verdict(self, verifier: str, version: str) -> Verdict:
        """Returns the problem as an `infra_error` verdict, for records that accept only verdicts."""
        return broken(verifier, version, self.reason)


def broken(verifier: str, version: str, reason: str, seconds: float = 0.0) -> Verdict:
    """Returns an `infra_error` verdict: nothing is known about the submission."""
    return Judgement(Ground.BROKEN, reason[:1000], {}).verdict(verifier, version, seconds=seconds)
