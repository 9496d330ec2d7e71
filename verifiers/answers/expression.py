"""Answers that must be mathematically equal to an expected expression.

Equality has three values, and only "proved equal" passes. Refused before that: what is not in the language, what has no
value, symbols that the spec does not list, and answers that leave the work to the verifier: where the expected answer
is a written number, so must the answer be (`sqrt(9)`, `17 + 25` and `gcd(12, 18)` only restate a question), and a
constant may use no function that the expected answer does not use, apart from roots and powers.
"""

from __future__ import annotations

from importlib.metadata import version as installed

from verifiers.answers.equality import Truth, compare, has_value
from verifiers.answers.exact import judged
from verifiers.answers.grammar.errors import GrammarError
from verifiers.answers.grammar.nodes import Call, Expression, symbols, walk
from verifiers.answers.grammar.parser import FUNCTIONS, parse_expression
from verifiers.answers.grammar.rational import rational
from verifiers.answers.reading import clipped, is_written_number, shown
from verifiers.errors import SpecError
from verifiers.spec import ExpressionSpec
from verifiers.verdict import Ground, Verdict

FREE_FUNCTIONS = frozenset({"sqrt", "cbrt", "root", "exp"})
SAME_FUNCTION = {"log": "ln"}
GROUNDS = {Truth.EQUAL: Ground.PROVED, Truth.DIFFERENT: Ground.REFUTED, Truth.OPEN: Ground.UNKNOWN}


def functions(node: Expression) -> frozenset[str]:
    names = {part.function for part in walk(node) if isinstance(part, Call)}
    return frozenset(SAME_FUNCTION.get(name, name) for name in names)


class ExpressionVerifier:
    name = "expression"
    version = f"2+sympy{installed('sympy')}"

    def check(self, spec: ExpressionSpec, *, prove: bool = False) -> None:
        """Raises SpecError where the expected answer cannot be read, has no value, or uses a symbol not listed."""
        for variable in spec.variables:
            if not (variable.isascii() and variable.isalpha()) or variable in {"and", "or", "not", *FUNCTIONS, "pi"}:
                raise SpecError(
                    f"{clipped(variable)!r} cannot be a variable", hint="Name variables with plain letters."
                )
        try:
            usable = has_value(parse_expression(spec.expected, spec.variables))
        except GrammarError as error:
            raise SpecError(
                f"the expected answer cannot be used: {error}",
                hint="Write it in plain mathematics or simple LaTeX and list its symbols in `variables`.",
            ) from error
        if not usable:
            raise SpecError(
                "the expected answer has no value that can be computed",
                hint="Factorials, divisors and the like are for numbers only; powers are computed to about 2^65536.",
            )

    def verify(self, spec: ExpressionSpec, submission: str) -> Verdict:
        expected = parse_expression(spec.expected, spec.variables)
        try:
            answer = parse_expression(submission, spec.variables)
            refusal = unfinished(answer, expected)
            if refusal:
                return self._judged(Ground.UNFINISHED, refusal, {"submitted": clipped(submission)})
            finding = compare(answer, expected)
        except GrammarError as error:
            return self._judged(Ground.UNREADABLE, f"cannot be read: {error}", {"submitted": clipped(submission)})
        evidence: dict[str, object] = {"submitted": clipped(submission), "because": finding.because}
        value = rational(answer)
        if value is not None:
            evidence["value"] = shown(value)
        if finding.witness:
            evidence["witness"] = finding.witness
        reason = {
            Truth.EQUAL: "equal to the expected answer",
            Truth.DIFFERENT: "not equal to the expected answer",
            Truth.OPEN: "not decided whether it equals the expected answer",
        }[finding.truth]
        return self._judged(GROUNDS[finding.truth], reason, evidence)

    def _judged(self, ground: Ground, reason: str, evidence: dict[str, object]) -> Verdict:
        return judged(ground, reason, evidence, self.name, self.version)


def unfinished(answer: Expression, expected: Expression) -> str:
    """Why an answer leaves the work to whoever checks it; empty where it does not."""
    if symbols(expected):
        return ""
    if is_written_number(expected):
        return "" if is_written_number(answer) else "not worked out: the answer is a number, write the number"
    extra = functions(answer) - functions(expected) - FREE_FUNCTIONS
    return f"not worked out: {', '.join(sorted(extra))} is left to be computed" if extra else ""
