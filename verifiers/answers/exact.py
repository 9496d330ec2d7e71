"""Answers that are compared as text or as integers. Nothing is computed beyond reading decimal digits."""

from __future__ import annotations

import re

from verifiers.answers.reading import clipped
from verifiers.errors import SpecError
from verifiers.spec import ExactSpec, IntegerSpec
from verifiers.verdict import Ground, Outcome, Verdict

INTEGER = re.compile(r"[+-]?[0-9]{1,2000}", re.ASCII)
MAX_CHARACTERS = 10_000
BLANKS = " \t\r\n"


def judged(ground: Ground, reason: str, evidence: dict[str, object], verifier: str, version: str) -> Verdict:
    """A verdict about a submission that could be judged: only a proof passes. The worker fills in the time it took."""
    passed = ground is Ground.PROVED
    return Verdict(
        outcome=Outcome.PASS if passed else Outcome.FAIL,
        score=1.0 if passed else 0.0,
        reason=reason,
        ground=ground,
        evidence=evidence,
        verifier=verifier,
        version=version,
        seconds=0.0,
    )


class ExactVerifier:
    name = "exact"
    version = "1"

    def check(self, spec: ExactSpec, *, prove: bool = False) -> None:
        """Raises SpecError for an expected text that is empty: it would accept an agent that says nothing."""
        if not spec.expected.strip():
            raise SpecError("the expected answer is empty", hint="Give the text that the answer must be.")

    def verify(self, spec: ExactSpec, submission: str) -> Verdict:
        if len(submission) > MAX_CHARACTERS:
            return judged(Ground.UNREADABLE, f"longer than {MAX_CHARACTERS} characters", {}, self.name, self.version)
        same = submission.strip() == spec.expected.strip()
        evidence: dict[str, object] = {"read": clipped(submission.strip())}
        ground = Ground.PROVED if same else Ground.REFUTED
        return judged(ground, "the same text" if same else "another text", evidence, self.name, self.version)


class IntegerVerifier:
    name = "integer"
    version = "1"

    def check(self, spec: IntegerSpec, *, prove: bool = False) -> None:
        """Raises SpecError for digits of other scripts, which the pattern of the spec lets through."""
        if not INTEGER.fullmatch(spec.expected):
            raise SpecError(
                "the expected answer is not an integer in ASCII digits", hint="Write it with the digits 0 to 9."
            )

    def verify(self, spec: IntegerSpec, submission: str) -> Verdict:
        text = submission.strip(BLANKS)
        if not INTEGER.fullmatch(text):
            reason = "not one integer written in at most 2,000 decimal digits"
            return judged(Ground.UNREADABLE, reason, {"submitted": clipped(text)}, self.name, self.version)
        same = int(text) == int(spec.expected)
        evidence: dict[str, object] = {"read": clipped(text)}
        ground = Ground.PROVED if same else Ground.REFUTED
        return judged(ground, "the same integer" if same else "another integer", evidence, self.name, self.version)
