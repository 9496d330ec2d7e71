"""Decides answers of any kind: parses, compares, and passes only if equality is proved.

Refused before any comparison: text that is not exactly one answer, and forms that the spec does not allow. Symbols
unknown to the spec, `nan`, infinity instead of a number, and restatements of the question leave the work to the
verifier. Closeness is equality only within a tolerance of the spec.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from verifiers.answers.algebra.equality import Truth, undecided
from verifiers.answers.algebra.scalars import Scalars
from verifiers.answers.coerce import coerced
from verifiers.answers.compare import Comparer
from verifiers.answers.compare_relations import solved
from verifiers.answers.compare_sets import is_set, only_symbol
from verifiers.answers.expected import refuse_misread
from verifiers.answers.format import described
from verifiers.answers.forms import refusal
from verifiers.answers.grammar.errors import GrammarError, TooLargeError, UndefinedError
from verifiers.answers.grammar.nodes import Expression, Negation, Number, Power, Product, Sum, symbols
from verifiers.answers.grammar.numerals import other_readings
from verifiers.answers.grammar.rational import rational
from verifiers.answers.grammar.reading.plain import parse_expression
from verifiers.answers.grammar.reading.read_answer import formula_of, read_answer
from verifiers.answers.grammar.traverse import expressions, free_symbols, values
from verifiers.answers.grammar.values import (
    Approximated,
    Builder,
    Quantity,
    RelationValue,
    Scalar,
    TextAnswer,
    Tuple,
    Value,
)
from verifiers.answers.grammar.vocabulary import FUNCTIONS
from verifiers.answers.spec import AnswerSpec
from verifiers.answers.tolerance import Tolerance, number
from verifiers.contract.errors import SpecError
from verifiers.contract.text import escaped
from verifiers.contract.verdict import Ground

MAX_POWER = 400


def without_approximation(value: Value, scalars: Scalars) -> Value:
    r"""Returns the exact part of a value such as `5/36 \approx 0.139`, and others unchanged. Raises GrammarError if the
    decimal is not proved to be the value, rounded or cut off."""
    if not isinstance(value, Approximated):
        return value
    near, place = _last_place(value.near)
    above, below = (_side(value.exact, near + side * place / 2, scalars) for side in (1, -1))
    rounded = above in (0, -1) and below in (0, 1)
    outwards = 1 if near >= 0 else -1
    beyond = _side(value.exact, near + outwards * place, scalars)
    cut_off = _side(value.exact, near, scalars) in (0, outwards) and beyond == -outwards
    if not (rounded or cut_off):
        raise GrammarError("an approximation that does not agree with the value before it")
    return value.of


def _side(exact: Expression, bound: Fraction, scalars: Scalars) -> int | None:
    """Returns the sign of a constant minus a bound: -1, 0 or 1. None if it is undecided."""
    return scalars.sign(Sum((exact, Number(-bound))))


def _last_place(node: Expression) -> tuple[Fraction, Fraction]:
    """Returns the value of a decimal, and one unit of its last place: 0.139 and 0.001. Raises GrammarError for other
    expressions."""
    match node:
        case Negation(of):
            near, place = _last_place(of)
            return -near, place
        case Number(value, written):
            return value, _place(value, written)
        case Product((Number(value, written), Power(Number(ten), exponent))) if ten == 10:
            power = _whole(exponent)
            return value * Fraction(10) ** power, _place(value, written) * Fraction(10) ** power
        case _:
            raise GrammarError("an approximation that is not a decimal")


def _place(value: Fraction, written: str) -> Fraction:
    if not written and value.denominator == 1:
        return Fraction(1)
    whole, point, digits = written.partition(".")
    if not (whole + digits).isdigit() or not point:
        raise GrammarError("an approximation that is not a decimal")
    return Fraction(1, 10 ** len(digits))


def _whole(node: Expression) -> int:
    match node:
        case Number(value) if value.denominator == 1 and value <= MAX_POWER:
            return int(value)
        case Negation(Number(value)) if value.denominator == 1 and value <= MAX_POWER:
            return -int(value)
        case _:
            raise GrammarError("an approximation that is not a decimal")


NO_ANSWERS = frozenset({"nan", "inf", "oo", "zoo", "null"})
"""Program output in place of an answer."""
RESERVED = frozenset({"and", "or", "not", "pi", *FUNCTIONS})


@dataclass(frozen=True)
class PreparedAnswer:
    """Parsed expected answer and comparer of a spec, computed once for all submissions."""

    expected: Value
    comparer: Comparer
    compound: Value | None = None
    """The expected product read as a chemical formula, if its letters may be one: `CO_2`."""


def read(spec: AnswerSpec, text: str, expected: Value | None = None) -> Value:
    """Parses a text in the spec's notation. `expected` is the expected answer, which decides between several readings.
    Raises GrammarError if the text cannot be read."""
    if spec.notation == "plain":
        return Scalar(parse_expression(text, spec.variables or ()))
    return read_answer(text, variables=spec.variables, expected=expected, complex_symbols=spec.domain == "complex")


@lru_cache(maxsize=512)
def prepared(spec: AnswerSpec) -> PreparedAnswer:
    """Parses a spec's expected answer and tolerances for comparison. Raises SpecError if either is unusable."""
    for variable in (spec.variables or ()) if spec.notation == "plain" else ():
        if not (variable.isascii() and variable.isalpha()) or variable in RESERVED:
            raise SpecError(f"{escaped(variable)!r} cannot be a variable", hint="Name variables with plain letters.")
    absolute, relative = number(spec.absolute, "absolute"), number(spec.relative, "relative")
    tolerance = None if absolute is None and relative is None else Tolerance(absolute, relative)
    seed = int.from_bytes(hashlib.sha256(spec.model_dump_json().encode()).digest()[:8])
    comparer = Comparer(
        Scalars(seed, spec.domain), units=spec.units, any_order=spec.order == "any", tolerance=tolerance
    )
    try:
        expected = without_approximation(read(spec, spec.expected), comparer.scalars)
    except GrammarError as error:
        raise SpecError(
            f"the expected answer cannot be read: {error}",
            hint="Write one answer in plain mathematics or simple LaTeX.",
        ) from error
    if isinstance(expected, TextAnswer) and expected.text in NO_ANSWERS:
        raise SpecError(f"{expected.text!r} is not an answer", hint="Give an answer that exists, or put it in words.")
    if spec.notation == "any":
        refuse_misread(spec.expected, expected, named=spec.variables is not None)
    product = isinstance(expected, Scalar) and spec.notation == "any" and not spec.variables
    return PreparedAnswer(expected, comparer, formula_of(spec.expected, certain=False) if product else None)


@lru_cache(maxsize=512)
def in_units(spec: AnswerSpec) -> Value | None:
    """Reads the expected answer of a spec with letters after numbers as units, `0.5 T`. Returns None if it then has no
    unit. Serves submissions that have a unit."""
    try:
        found = read_answer(spec.expected, variables=spec.variables, units=True)
    except GrammarError:
        return None
    return found if _holds_unit(found) else None


def _holds_unit(value: Value) -> bool:
    return not isinstance(value, Scalar) and any(isinstance(part, Quantity) for part in values(value))


def meant(spec: AnswerSpec, text: str, ready: PreparedAnswer) -> tuple[Value, Value]:
    """Parses an answer. Returns it with the expected answer, which is read anew if the answer's units or formula settle
    its meaning. Raises GrammarError if the answer cannot be read."""
    if ready.compound is not None and formula_of(text) is not None:
        return read(spec, text, ready.compound), ready.compound
    answer = without_approximation(read(spec, text, ready.expected), ready.comparer.scalars)
    answer = _as_point(answer, ready.expected, spec.variables or ())
    if spec.notation == "any" and _holds_unit(answer) and not _holds_unit(ready.expected):
        return answer, in_units(spec) or ready.expected
    return answer, ready.expected


def _as_point(answer: Value, expected: Value, names: tuple[str, ...]) -> Value:
    """Converts values of named coordinates, `q = 2, p = 1`, to a point in the order of the spec's variables if a point
    is expected. Returns other answers unchanged."""
    if not isinstance(expected, Tuple) or not isinstance(answer, RelationValue) or len(names) != len(expected.items):
        return answer
    found = solved(answer) or {}
    return Tuple(tuple(Scalar(found[name]) for name in names)) if found.keys() == set(names) else answer


def check(spec: AnswerSpec, *, prove: bool) -> None:
    """Raises SpecError if the expected answer has no value or does not parse, or a tolerance accepts too much. Without
    `prove` only rational numbers are computed."""
    ready = prepared(spec)
    try:
        if ready.comparer.tolerance is not None:
            ready.comparer.tolerance.check(ready.expected, ready.comparer.scalars, prove=prove)
        if not prove:
            for node in expressions(ready.expected):
                if not symbols(node):
                    rational(node)
            return
        itself = ready.comparer.compare(ready.expected, ready.expected)
    except TooLargeError as error:
        if prove:
            raise SpecError(f"the expected answer is too large: {error}", hint="Write it in a simpler form.") from error
        return
    except GrammarError as error:
        raise SpecError(
            f"the expected answer has no value: {error}", hint="Give an answer that exists, or put it in words."
        ) from error
    if itself.truth is not Truth.EQUAL:
        raise SpecError(
            f"the expected answer cannot be decided: {itself.because}",
            hint="Not even the expected answer itself would pass. Write it in a simpler form.",
        )


Finding = tuple[Ground, str, dict[str, object]]


def judge(spec: AnswerSpec, text: str, evidence: dict[str, object]) -> Finding:
    """Compares the text of an answer with the expected answer of a spec. Returns basis, reason and evidence. Never
    raises because of the text. A text with another usual reading that is the expected answer is never refuted."""
    finding = _judged(spec, text, evidence)
    if finding[0] is not Ground.REFUTED or spec.notation != "any":
        return finding
    own = [(spec, other) for other in other_readings(text)]
    golds = (spec.model_copy(update={"expected": other}) for other in other_readings(spec.expected, points=False))
    for other_spec, other in (*own, *((gold, text) for gold in golds)):
        try:
            agrees = _judged(other_spec.model_copy(update={"form": "equal"}), other, {})[0] is Ground.PROVED
        except SpecError:
            continue
        if agrees:
            reason = "cannot be read: its digits have two usual readings, and one is the expected answer"
            return Ground.UNREADABLE, f"{reason}: write numbers without separators", evidence
    return finding


def _judged(spec: AnswerSpec, text: str, evidence: dict[str, object]) -> Finding:
    ready = prepared(spec)
    evidence["expected_read"] = described(ready.expected)
    try:
        answer, expected = meant(spec, text, ready)
        evidence["read"] = described(answer)
        if expected is not ready.expected:
            evidence["expected_read"] = described(expected)
        bare, wanted = coerced(answer, expected, ready.comparer.scalars)
        near = ready.comparer.tolerance is not None
        left = refusal(bare, wanted, spec.form, sums=spec.notation == "any", near=near)
        reason = unknown_symbols(bare, wanted, spec.variables) or left
        if reason:
            return Ground.UNFINISHED, reason, evidence
        finding = ready.comparer.compare(answer, expected)
        if finding.truth is Truth.EQUAL and not _has_values(answer, expected, ready.comparer.scalars):
            finding = undecided("a part of it is not shown to have a value")
    except GrammarError as error:
        if "read" in evidence and isinstance(error, UndefinedError):
            return Ground.REFUTED, f"has no value: {error}", evidence
        if "read" in evidence and isinstance(error, TooLargeError):
            return Ground.UNKNOWN, f"not decided: {error}", evidence
        return Ground.UNREADABLE, f"cannot be read: {error}", evidence
    evidence["because"] = finding.because
    if finding.witness:
        evidence["witness"] = dict(finding.witness)
    match finding.truth:
        case Truth.EQUAL:
            return Ground.PROVED, "equal to the expected answer", evidence
        case Truth.DIFFERENT:
            return Ground.REFUTED, f"not equal to the expected answer: {finding.because}", evidence
        case Truth.OPEN:
            return Ground.UNKNOWN, f"not decided whether it is equal: {finding.because}", evidence


def _has_values(answer: Value, expected: Value, scalars: Scalars) -> bool:
    """True if every expression of an answer is shown to have a value, or is written in the expected one as well."""
    if answer == expected:
        return True
    known = set(expressions(expected))
    return all(node in known or scalars.has_value(node) for node in dict.fromkeys(expressions(answer)))


def unknown_symbols(answer: Value, expected: Value, variables: tuple[str, ...] | None) -> str:
    """Returns the reason why an answer's symbols are not allowed; empty if they are."""
    allowed = free_symbols(expected) if variables is None else frozenset(variables)
    # Two numbers in brackets may be meant as an interval.
    ranges = is_set(expected) or (isinstance(expected, Tuple) and len(expected.items) == 2)
    own = only_symbol(answer) if isinstance(answer, Builder) or ranges else None
    extra = free_symbols(answer) - allowed - {own or ""}
    # Other unknowns make a different equation, which the comparison reports.
    relations = isinstance(answer, RelationValue) and isinstance(expected, RelationValue) and variables is None
    if relations or not extra:
        return ""
    return f"contains symbols that the expected answer does not have: {', '.join(map(escaped, sorted(extra)))}"
