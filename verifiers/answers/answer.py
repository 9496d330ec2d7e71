"""Answers of any kind: read, compared with the expected one, and passed only where equality is proved.

Refused before anything is compared: what cannot be read as exactly one answer, and what the spec's form does not allow.
Symbols that the spec does not know, `nan`, infinity where a number was expected, and whatever only restates the
question leave the work to whoever checks. Closeness is equality only within a tolerance that the spec gives.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import version as installed

from verifiers.answers.approximations import settled
from verifiers.answers.compare import Comparer
from verifiers.answers.compare_sets import is_set, only_symbol
from verifiers.answers.equality import Finding, Truth
from verifiers.answers.exact import judged
from verifiers.answers.forms import refusal
from verifiers.answers.grammar.errors import GrammarError, TooLargeError, UndefinedError
from verifiers.answers.grammar.nodes import symbols
from verifiers.answers.grammar.rational import rational
from verifiers.answers.grammar.wrapping import boxed
from verifiers.answers.meeting import met
from verifiers.answers.parts import expressions, free_symbols
from verifiers.answers.read_answer import read_answer
from verifiers.answers.reading import clipped
from verifiers.answers.scalars import Scalars
from verifiers.answers.spec import AnswerSpec
from verifiers.answers.tolerances import Tolerance, number
from verifiers.answers.values import Builder, Images, Relation, Value, Words
from verifiers.answers.writing import described
from verifiers.errors import SpecError
from verifiers.verdict import Ground, Verdict

SYMPY = installed("sympy")
NO_ANSWERS = frozenset({"nan", "inf", "oo", "zoo", "null"})
"""What programs print where they have no answer."""


@dataclass(frozen=True)
class Prepared:
    """What a spec needs for every submission, worked out once."""

    expected: Value
    comparer: Comparer


@lru_cache(maxsize=512)
def prepared(spec: AnswerSpec) -> Prepared:
    """Raises SpecError for an expected answer that cannot be read, and for a tolerance that cannot be used."""
    absolute, relative = number(spec.absolute, "absolute"), number(spec.relative, "relative")
    tolerance = None if absolute is None and relative is None else Tolerance(absolute, relative)
    seed = int.from_bytes(hashlib.sha256(spec.model_dump_json().encode()).digest()[:8])
    comparer = Comparer(
        Scalars(seed, spec.domain), units=spec.units, any_order=spec.order == "any", tolerance=tolerance
    )
    try:
        expected = read_answer(spec.expected, variables=spec.variables)
        expected = settled(expected, comparer.scalars)
    except GrammarError as error:
        raise SpecError(
            f"the expected answer cannot be read: {error}",
            hint="Write one answer in plain mathematics or simple LaTeX.",
        ) from error
    if isinstance(expected, Words) and expected.text in NO_ANSWERS:
        raise SpecError(f"{expected.text!r} is no answer", hint="Give an answer that exists, or say it in words.")
    return Prepared(expected, comparer)


class AnswerVerifier:
    name = "answer"
    version = f"3+sympy{SYMPY}"

    def check(self, spec: AnswerSpec, *, prove: bool = False) -> None:
        """Raises SpecError where the expected answer cannot be read, has no value, or a tolerance accepts too much.

        Without `prove` only what arithmetic tells is looked at, and SymPy is not imported.
        """
        ready = prepared(spec)
        constants = [node for node in expressions(ready.expected) if not symbols(node)]
        try:
            for node in constants:
                if ready.comparer.tolerance is not None and (prove or rational(node) is not None):
                    ready.comparer.tolerance.check(node, ready.comparer.scalars)
            if not prove:
                return
            itself = ready.comparer.compare(ready.expected, ready.expected)
        except TooLargeError as error:
            if prove:
                raise SpecError(
                    f"the expected answer is too large: {error}", hint="Write it in a simpler form."
                ) from error
            return
        except GrammarError as error:
            raise SpecError(
                f"the expected answer has no value: {error}", hint="Give an answer that exists, or say it in words."
            ) from error
        if itself.truth is not Truth.EQUAL:
            raise SpecError(
                f"the expected answer cannot be decided: {itself.because}",
                hint="Not even the expected answer itself would pass. Write it in a simpler form.",
            )

    def verify(self, spec: AnswerSpec, submission: str) -> Verdict:
        """Never raises for what a submission holds."""
        ready = prepared(spec)
        evidence: dict[str, object] = {"submitted": clipped(submission), "expected_read": described(ready.expected)}
        try:
            text = boxed(submission) if spec.final == "boxed" else submission
            answer = read_answer(text, variables=spec.variables, expected=ready.expected)
            answer = settled(answer, ready.comparer.scalars)
        except GrammarError as error:
            return self._judged(Ground.UNREADABLE, f"cannot be read: {error}", evidence)
        evidence["read"] = described(answer)
        try:
            bare, wanted = met(answer, ready.expected, ready.comparer.scalars)
            reason = unknown_symbols(bare, wanted, spec.variables) or refusal(bare, wanted, spec.form)
            if reason:
                return self._judged(Ground.UNFINISHED, reason, evidence)
            finding = ready.comparer.compare(answer, ready.expected)
        except UndefinedError as error:
            return self._judged(Ground.REFUTED, f"has no value: {error}", evidence)
        except TooLargeError as error:
            return self._judged(Ground.UNKNOWN, f"not decided: {error}", evidence)
        except GrammarError as error:
            return self._judged(Ground.UNREADABLE, f"cannot be read: {error}", evidence)
        return self._found(finding, evidence)

    def _found(self, finding: Finding, evidence: dict[str, object]) -> Verdict:
        evidence["because"] = finding.because
        if finding.witness:
            evidence["witness"] = dict(finding.witness)
        match finding.truth:
            case Truth.EQUAL:
                return self._judged(Ground.PROVED, "equal to the expected answer", evidence)
            case Truth.DIFFERENT:
                return self._judged(Ground.REFUTED, f"not equal to the expected answer: {finding.because}", evidence)
            case Truth.OPEN:
                return self._judged(Ground.UNKNOWN, f"not decided whether it is equal: {finding.because}", evidence)

    def _judged(self, ground: Ground, reason: str, evidence: dict[str, object]) -> Verdict:
        found = judged(ground, reason, evidence, self.name, self.version)
        return found.model_copy(update={"tools": {"sympy": SYMPY}})


def unknown_symbols(answer: Value, expected: Value, variables: tuple[str, ...] | None) -> str:
    """Why symbols of the answer are not those of the spec; empty where they are."""
    allowed = free_symbols(expected) if variables is None else frozenset(variables)
    extra = free_symbols(answer) - allowed
    if isinstance(answer, Relation) and is_set(expected):
        own = only_symbol(answer)
        extra -= {own} if own else frozenset()
    if isinstance(answer, Builder):
        extra -= {answer.symbol}
    if isinstance(answer, Images) and answer.name and is_set(expected):
        extra -= {answer.name}
    if isinstance(answer, Relation) and isinstance(expected, Relation) and variables is None:
        # Another unknown makes another equation: the comparison says so.
        return ""
    return (
        f"holds symbols that the expected answer does not have: {', '.join(map(clipped, sorted(extra)))}"
        if extra
        else ""
    )
