"""Substitutes answers into a predicate, with exact arithmetic; no known answer is needed.

The answer is one closed-form constant of the domain, or `x = constant` with the predicate's own variable. A value that
makes a part of the predicate undefined or undecidable passes only if the rest settles it (Kleene's logic). In the
domains `integer` and `rational` the value must be written as a number; elsewhere a rational value must be, and
`sqrt(2)` or `(1 + sqrt(5))/2` is fine: the answer must be worked out, not left to the verifier.

A predicate without its variable, or one that holds for every value tried, is a bad spec: it would prove nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from fractions import Fraction

from verifiers.answers.algebra.equality import Truth
from verifiers.answers.algebra.intervals import OpenError, enclosure
from verifiers.answers.algebra.scalars import Scalars
from verifiers.answers.format import shown
from verifiers.answers.forms import is_written_number, leaves_work
from verifiers.answers.grammar import nodes as n
from verifiers.answers.grammar.errors import GrammarError, TooLargeError
from verifiers.answers.grammar.nodes import HOLDS, comparisons, minus, number, substitute, symbols
from verifiers.answers.grammar.rational import rational
from verifiers.answers.grammar.reading.plain import parse_expression, parse_predicate
from verifiers.contract.errors import SpecError
from verifiers.contract.text import escaped
from verifiers.contract.verdict import Ground, Verdict, judged
from verifiers.predicate.kind import PREDICATE
from verifiers.predicate.spec import PredicateSpec

WHOLE_SAMPLES = (*range(-24, 25), 97, 1001, -1001, 10**9 + 7, -(10**9) - 7, 10**40, -(10**40))
BROKEN_SAMPLES = tuple(Fraction(a, b) for a, b in ((1, 2), (-1, 2), (22, 7), (-5, 3), (355, 113), (-999, 7)))

SCALARS = {prove: Scalars(0, "complex", prove=prove) for prove in (True, False)}
"""Scalar comparisons with SymPy (True) and without it (False)."""
FOUND = {
    True: (Ground.PROVED, "makes the predicate true"),
    False: (Ground.REFUTED, "makes the predicate false"),
    None: (Ground.UNKNOWN, "undecided: the predicate has no certain truth value for this answer"),
}
PROVED_SAMPLES = (1, 2, -3, 10)
"""Samples for SymPy, which is slow, used if arithmetic alone decided nothing."""


class PredicateVerifier:
    name = PREDICATE.name
    version = PREDICATE.version

    def check(self, spec: PredicateSpec, *, prove: bool = False) -> None:
        """Raises SpecError for a predicate that does not parse, lacks its variable or accepts everything tried.

        Without `prove` only rational arithmetic counts, and SymPy is not imported.
        """
        try:
            condition = parse_predicate(spec.predicate, spec.variable)
        except GrammarError as error:
            raise SpecError(
                f"the predicate cannot be read: {error}",
                hint=f"Write comparisons over {spec.variable}, such as 7*{spec.variable} + 3 == 45.",
            ) from error
        for comparison in comparisons(condition):
            if not any(spec.variable in symbols(operand) for operand in comparison.operands):
                raise SpecError(
                    f"a comparison does not mention {spec.variable}: it says nothing about the answer",
                    hint=f"Remove it, or set the variable of the answer (now {spec.variable}).",
                )
        if _vacuous(condition, spec, prove=prove):
            raise SpecError(
                "the predicate holds for every value tried: it would accept nearly any answer",
                hint="Write a condition that only a right answer satisfies, such as an equation.",
            )

    def verify(self, spec: PredicateSpec, submission: str) -> Verdict:
        condition = parse_predicate(spec.predicate, spec.variable)
        evidence: dict[str, object] = {"submitted": escaped(submission)}
        try:
            answer = read_answer(submission, spec.variable)
            value = rational(answer)
            if value is not None:
                evidence["value"] = shown(value)
            refusal = outside(answer, value, spec)
            if refusal:
                return self._judged(Ground.UNFINISHED, refusal, evidence)
            truth = decide(condition, spec.variable, answer if value is None else number(value))
        except GrammarError as error:
            return self._judged(Ground.UNREADABLE, f"cannot be read: {error}", evidence)
        return self._judged(*FOUND[truth], evidence)

    def _judged(self, ground: Ground, reason: str, evidence: dict[str, object]) -> Verdict:
        return judged(ground, reason, evidence, self.name, self.version)


def read_answer(submission: str, variable: str) -> n.Expression:
    """Parses the submitted constant, with or without `x =` before it. Raises GrammarError."""
    named = re.match(rf"\s*\$?\s*{variable}\s*=(?!=)", submission)
    text = submission[named.end() :] if named else submission
    if named and "$" in named.group():
        text = "$" + text
    return parse_expression(text)


def outside(answer: n.Expression, value: Fraction | None, spec: PredicateSpec) -> str:
    """Returns the reason why an answer is not a worked-out constant of the domain, empty if it is one."""
    if spec.domain in ("integer", "rational"):
        if value is None:
            return f"not known to be {'an' if spec.domain == 'integer' else 'a'} {spec.domain} number"
        if not is_written_number(answer):
            return "not worked out: write the number"
        if spec.domain == "integer" and value.denominator != 1:
            return "not an integer"
        return ""
    if leaves_work(answer):
        return "not worked out: write the number"
    if value is not None:
        return ""
    try:
        held = enclosure(40)
        _ = held.real(answer) if spec.domain == "real" else held.value(answer)
    except OpenError as error:
        return f"not known to be a {spec.domain} number: {error}"
    return ""


def decide(condition: n.Condition, variable: str, value: n.Expression, *, prove: bool = True) -> bool | None:
    """Decides if a condition holds at a value; None if undecided or if a part is undefined there.

    Raises TooLargeError if a part is too large to compute.
    """
    match condition:
        case n.Not(of):
            inside = decide(of, variable, value, prove=prove)
            return None if inside is None else not inside
        case n.And(parts):
            return _all(decide(part, variable, value, prove=prove) for part in parts)
        case n.Or(parts):
            opposite = _all(_negated(decide(part, variable, value, prove=prove)) for part in parts)
            return _negated(opposite)
        case n.ComparisonNode(operands, relations):
            filled = [substitute(operand, {variable: value}) for operand in operands]
            pairs = zip(filled, relations, filled[1:], strict=False)
            return _all(_holds(first, relation, second, prove) for first, relation, second in pairs)


def _negated(truth: bool | None) -> bool | None:
    return None if truth is None else not truth


def _all(truths: Iterable[bool | None]) -> bool | None:
    found = True
    for truth in truths:
        if truth is False:
            return False
        found = found and truth is True
    return True if found else None


def _holds(first: n.Expression, relation: n.Relation, second: n.Expression, prove: bool) -> bool | None:
    try:
        if relation in ("==", "!="):
            truth = SCALARS[prove].compare(first, second).truth
            return None if truth is Truth.OPEN else (truth is Truth.EQUAL) == (relation == "==")
        side = SCALARS[prove].sign(minus(first, second))
    except TooLargeError:
        raise
    except GrammarError:
        # Undefined at this value: neither true nor false.
        return None
    return None if side is None else HOLDS[relation](side, 0)


def _vacuous(condition: n.Condition, spec: PredicateSpec, *, prove: bool) -> bool:
    """True if the condition holds at every sample of the domain that could be decided, and at least one could."""
    samples = [Fraction(sample) for sample in WHOLE_SAMPLES]
    if spec.domain != "integer":
        samples += BROKEN_SAMPLES
    truths = [_at(condition, spec, sample, prove=False) for sample in samples]
    if prove and False not in truths and True not in truths:
        truths = [_at(condition, spec, Fraction(sample), prove=True) for sample in PROVED_SAMPLES]
    return True in truths and False not in truths


def _at(condition: n.Condition, spec: PredicateSpec, sample: Fraction, *, prove: bool) -> bool | None:
    try:
        return decide(condition, spec.variable, number(sample), prove=prove)
    except TooLargeError:
        return None
