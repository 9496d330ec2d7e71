"""The verdict: the only thing in this product that may become a reward.

`infra_error` is about us, not about the submission: it is masked from training, may be retried, and is never 0 or 1.
What is not known is never a pass: `unknown`, `timeout` and `memory` are failures with a name of their own.
"""

from __future__ import annotations

import math
from enum import StrEnum
from typing import Any, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

FOREIGN_REWARD = "foreign_reward"
"""In the evidence: the score of a program that is not ours."""


class Outcome(StrEnum):
    PASS = "pass"  # noqa: S105 - a verdict, no password
    FAIL = "fail"
    HACK_SUSPECTED = "hack_suspected"
    INFRA_ERROR = "infra_error"


class Ground(StrEnum):
    """What an outcome rests on."""

    PROVED = "proved"
    """Pass: by proof, or by exact computation."""
    TESTED = "tested"
    """Pass: every test, item or sample held. That is evidence and no proof."""
    REFUTED = "refuted"
    """Fail: by a witness, a counter-example, a failing input, an item that does not hold."""
    UNREADABLE = "unreadable"
    """Fail: it is not in the language, or not exactly one answer."""
    UNFINISHED = "unfinished"
    """Fail: it leaves the work to whoever checks it, or is not in the form that was asked for."""
    ABSTAINED = "abstained"
    """Fail: it says that it does not know, which the spec holds for better than a wrong answer."""
    UNKNOWN = "unknown"
    """Fail: neither proved nor refuted."""
    TIMEOUT = "timeout"
    """Fail: it did not come to an end, by its own doing."""
    MEMORY = "memory"
    """Fail: it took too much memory, by its own doing."""
    FORBIDDEN = "forbidden"
    """Fail or hack_suspected: something that no honest submission needs."""
    BROKEN = "broken"
    """Infra_error: nothing is known of the submission."""


class Verdict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    outcome: Outcome
    score: float = Field(ge=0, le=1)
    """1 for `pass`, unless the spec asks for partial credit; 0 for everything else, where only `fail` and
    `hack_suspected` mean it as a judgement. An abstention that the spec allows fails with a score of its own."""
    reason: str
    """One sentence that a person understands."""
    ground: Ground | None = None
    """None only in verdicts that were recorded before there were grounds."""
    evidence: dict[str, Any] = {}
    """What lets somebody else check the reason: the parsed forms, a witness, the values compared. JSON only."""
    verifier: str
    version: str
    """Of the verifier: changes whenever the same input might give another verdict."""
    tools: dict[str, str] = {}
    """Name and version of every tool that had a part in it."""
    isolation: str = ""
    """What the submission was held in: `nsjail`, `gvisor`, or `process` for one that confined itself."""
    seconds: float

    @property
    def passed(self) -> bool:
        return self.outcome is Outcome.PASS

    @property
    def foreign_reward(self) -> float | None:
        """What a program that is not ours gave it, from 0 to 1; None where none did. It has no part in the outcome and
        none in the score, so nothing that is trained or promoted rests on it."""
        found = self.evidence.get(FOREIGN_REWARD)
        if isinstance(found, bool) or not isinstance(found, int | float) or not math.isfinite(found):
            return None
        return float(found) if 0 <= found <= 1 else None


class Judgement(NamedTuple):
    """What a verifier finds of a submission, before it is a verdict. Its ground says what the outcome is."""

    ground: Ground
    reason: str
    evidence: dict[str, Any]
    suspected: bool = False
    """Whether it has something that no honest submission has."""
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
        """`score` is for partial credit, `more` for tools, and for seconds unless the worker counts them."""
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
    """A verdict about a submission that could be judged."""
    return Judgement(ground, reason, evidence).verdict(verifier, version)


class SpecProblem(BaseModel):
    """In the place of a verdict: this spec cannot decide anything, which says nothing of the submission."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    message: str
    hint: str = ""

    @property
    def reason(self) -> str:
        return f"the spec cannot be used: {self.message}"

    def as_verdict(self, verifier: str, version: str) -> Verdict:
        """For records that have room for verdicts only: nothing is known of the submission."""
        return broken(verifier, version, self.reason)


def broken(verifier: str, version: str, reason: str, seconds: float = 0.0) -> Verdict:
    """The verdict of a submission of which nothing is known."""
    return Judgement(Ground.BROKEN, reason[:1000], {}).verdict(verifier, version, seconds=seconds)
