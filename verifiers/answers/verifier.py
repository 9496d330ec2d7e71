"""Verifier of the kind `answer`: integers directly, everything else by parsing and comparing.

Importing this module and deciding an integer import neither SymPy nor the grammar. Text that is not exactly one answer
is refused.
"""

from __future__ import annotations

import re

from verifiers.answers.grammar.errors import GrammarError
from verifiers.answers.grammar.preprocessing import boxed
from verifiers.answers.kind import ANSWER
from verifiers.answers.spec import INTEGER as DIGITS
from verifiers.answers.spec import AnswerSpec
from verifiers.contract.text import escaped
from verifiers.contract.verdict import Ground, Verdict, judged

INTEGER = re.compile(r"[+-]?[0-9]{1,2000}", re.ASCII)
BLANKS = " \t\r\n"


class AnswerVerifier:
    name = ANSWER.name
    version = ANSWER.version

    def check(self, spec: AnswerSpec, *, prove: bool = False) -> None:
        """Raises SpecError if the expected answer does not parse or has no value, or if a tolerance accepts too much.

        Without `prove` only plain arithmetic is used, and SymPy is not imported.
        """
        if spec.notation != "digits" and not _is_plain(spec):
            from verifiers.answers.judging import check

            check(spec, prove=prove)

    def verify(self, spec: AnswerSpec, submission: str) -> Verdict:
        """Decides if a submission equals the expected answer of a spec. Never raises because of the submitted text."""
        try:
            text = boxed(submission) if spec.final == "boxed" else submission
        except GrammarError as error:
            return self._verdict(Ground.UNREADABLE, f"cannot be read: {error}", {"submitted": escaped(submission)})
        bare = text.strip(BLANKS)
        if spec.notation == "digits" or (_is_plain(spec) and INTEGER.fullmatch(bare)):
            return self._integer(spec, bare)
        from verifiers.answers.judging import judge

        found = self._verdict(*judge(spec, text, {"submitted": escaped(submission)}))
        return found.model_copy(update={"tools": ANSWER.tool_versions})

    def _integer(self, spec: AnswerSpec, text: str) -> Verdict:
        if not INTEGER.fullmatch(text):
            reason = "not one integer written in at most 2,000 decimal digits"
            return self._verdict(Ground.UNREADABLE, reason, {"submitted": escaped(text)})
        if int(text) == int(spec.expected):
            return self._verdict(Ground.PROVED, "the same integer", {"read": escaped(text)})
        return self._verdict(Ground.REFUTED, "a different integer", {"read": escaped(text)})

    def _verdict(self, ground: Ground, reason: str, evidence: dict[str, object]) -> Verdict:
        return judged(ground, reason, evidence, self.name, self.version)


def _is_plain(spec: AnswerSpec) -> bool:
    """True if a spec expects an integer and nothing else about it, so that digits decide without the grammar."""
    named = spec.notation == "plain" or spec.variables is not None
    return DIGITS.fullmatch(spec.expected) is not None and not (spec.absolute or spec.relative or named)
