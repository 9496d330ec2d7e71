"""Text comparison for answers. Nothing is computed."""

from __future__ import annotations

from verifiers.contract.errors import SpecError
from verifiers.contract.text import escaped
from verifiers.contract.verdict import Ground, Judgement, Verdict, judged
from verifiers.exact.kind import EXACT
from verifiers.exact.spec import ABSTAINED, ExactSpec

MAX_CHARACTERS = 10_000


class ExactVerifier:
    name = EXACT.name
    version = EXACT.version

    def check(self, spec: ExactSpec, *, prove: bool = False) -> None:
        """Raises SpecError for an empty expected text, which would accept an empty answer."""
        if not spec.expected.strip():
            raise SpecError("the expected answer is empty", hint="Give the text that the answer must equal.")

    def verify(self, spec: ExactSpec, submission: str) -> Verdict:
        if len(submission) > MAX_CHARACTERS:
            return judged(Ground.UNREADABLE, f"longer than {MAX_CHARACTERS} characters", {}, self.name, self.version)
        if spec.abstention and submission.strip() == spec.abstention.strip() != spec.expected.strip():
            said = Judgement(Ground.ABSTAINED, "the answer abstains", {})
            return said.verdict(self.name, self.version, score=ABSTAINED)
        same = submission.strip() == spec.expected.strip()
        evidence: dict[str, object] = {"read": escaped(submission.strip())}
        ground = Ground.PROVED if same else Ground.REFUTED
        return judged(ground, "the same text" if same else "a different text", evidence, self.name, self.version)
