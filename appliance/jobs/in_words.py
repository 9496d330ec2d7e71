"""A check in plain words, for the person who has to say whether it is what was meant. Pure, and always the same.

What always holds: every field of a spec that decides whether something passes is said, so that a wrong domain,
tolerance, quantifier or limit can be seen; what is too long to be shown says how much of it is not, and by which digest
the rest is known. Texts are shown as they are: whoever prints a line escapes it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from appliance.jobs.checklist_words import checklist_lines
from appliance.jobs.program_words import program_lines
from appliance.jobs.smt_words import claim_lines
from verifiers.errors import SpecError
from verifiers.lean.statement import read_statement
from verifiers.spec import (
    AnswerSpec,
    ChecklistSpec,
    ExactSpec,
    ExpressionSpec,
    IntegerSpec,
    LeanSpec,
    PredicateSpec,
    ProgramSpec,
    SmtSpec,
    Spec,
)

MOST_LINES = 300
MOST_CHARACTERS = 400
"""Of a line."""
MOST_TEXT = 60_000
"""Bytes of all lines, with what is not ASCII escaped."""

NUMBERS = {
    "integer": "whole numbers: 0, 1, -1, 2, ...; 1/2 and 0.5 are not among them",
    "rational": "fractions of whole numbers; sqrt(2) is not among them",
    "real": "real numbers: whole ones, fractions, decimals and roots; i is not among them",
    "complex": "complex numbers, i among them",
}
FORMS = {
    "equal": "Any way of writing it is accepted, also one that leaves something to compute.",
    "worked_out": "Nothing may be left to compute that the expected answer has computed.",
    "simplified": "It has to be simplified: lowest terms, denested radicals, like terms collected.",
    "same": "It has to be written as the expected answer is, apart from notation: for 1/2, 0.5 is refused.",
}
UNITS = {
    "as_expected": "A unit has to be there exactly where the expected answer has one; other units of it are converted.",
    "optional": "A unit may be missing.",
    "ignored": "A unit says nothing: 5 m and 5 s are both 5.",
}
SYMBOLS = {
    "real": "Symbols stand for real numbers: sqrt(x^2) is |x|.",
    "complex": "Symbols stand for complex numbers.",
    "positive": "Symbols stand for positive numbers: sqrt(x^2) is x.",
    "integer": "Symbols stand for whole numbers.",
}


def in_words(spec: Spec) -> tuple[str, ...]:
    """Lines; those that begin with blanks are the spec's own text, or belong to the line before."""
    return bounded(list(_lines(spec)))


def question_lines(question: str) -> tuple[str, ...]:
    """The question as it is shown."""
    return bounded(question.splitlines())


def bounded(lines: list[str]) -> tuple[str, ...]:
    """So much of them as a person reads, and how much is left out."""
    kept: list[str] = []
    total = 0
    for line in lines:
        short = line if len(line) <= MOST_CHARACTERS else f"{line[: MOST_CHARACTERS - 30]}… ({len(line)} characters)"
        total += len(short.encode("ascii", "backslashreplace"))
        if len(kept) == MOST_LINES or total > MOST_TEXT:
            break
        kept.append(short)
    if kept != lines:
        digest = hashlib.sha256("\n".join(lines).encode("utf-8", "surrogatepass")).hexdigest()
        kept.append(
            f"(not shown: {len(lines) - len(kept)} of {len(lines)} lines, and the ends of long ones; all of it has "
            f"the SHA-256 {digest}, and `assay jobs show JOB --json` prints it)"
        )
    return tuple(kept)


def _lines(spec: Spec) -> Iterator[str]:
    match spec:
        case ExactSpec():
            yield "The answer has to be this very text, apart from white space around it:"
            yield from quoted(spec.expected)
        case IntegerSpec():
            yield f"The answer has to be the whole number {spec.expected}, in decimal digits with at most a sign."
            yield f"{spec.expected}.0, a sum or a word for it is refused."
        case ExpressionSpec():
            yield "The answer has to be mathematically equal to this, in any form:"
            yield from quoted(spec.expected)
            yield _variables(spec.variables)
        case PredicateSpec():
            yield f"The answer has to be one value for {spec.variable} that makes this true:"
            yield from quoted(spec.predicate)
            yield f"{spec.variable} is looked for among the {NUMBERS[spec.domain]}."
            yield "Any such value is accepted; whether there are others is not asked."
        case AnswerSpec():
            yield from _answer(spec)
        case SmtSpec():
            yield from claim_lines(spec)
            yield from _smt_rules(spec)
        case LeanSpec():
            yield from _lean(spec)
        case ProgramSpec():
            yield from program_lines(spec)
        case ChecklistSpec():
            yield from checklist_lines(spec)


def quoted(text: str) -> Iterator[str]:
    yield from (f"    {line}" for line in text.splitlines() or [""])


def _variables(names: tuple[str, ...]) -> str:
    return f"Symbols that may occur in it: {', '.join(names)}." if names else "No symbol may occur in it."


def _answer(spec: AnswerSpec) -> Iterator[str]:
    yield "The answer has to say the same as this:"
    yield from quoted(spec.expected)
    if spec.final == "boxed":
        yield "It is taken from the text's only \\boxed{...}; a text with none or with several is refused."
    else:
        yield "The whole text that is handed in is the answer."
    yield FORMS[spec.form]
    for amount, what in ((spec.absolute, "of it"), (spec.relative, "of it, as a share of its value")):
        if amount:
            yield f"A decimal within {amount} {what} is accepted as well."
    if not (spec.absolute or spec.relative):
        yield "Nothing that is only close is accepted: 0.33 is not 1/3."
    if spec.order == "any":
        yield "A list in brackets may come in any order."
    else:
        yield "A list in brackets has to come in this order; sets, and lists without brackets, in any."
    yield UNITS[spec.units]
    if spec.variables is None:
        yield "Symbols that may occur in it: those of the expected answer."
    else:
        yield _variables(spec.variables)
    yield SYMBOLS[spec.domain]


def _smt_rules(spec: SmtSpec) -> Iterator[str]:
    if spec.question == "entails" and not spec.holes:
        yield "Nothing is supplied: the answer is the word `entailed`, and the solver decides."
    if spec.uses:
        yield f"A submission may also use: {', '.join(spec.uses)}."
    if spec.allowed is not None:
        yield f"It may use these operators and no others: {', '.join(spec.allowed) or 'none'}."
    if spec.forbidden:
        yield f"It may not use: {', '.join(spec.forbidden)}."
    if spec.max_size is not None:
        yield f"It may have at most {spec.max_size} symbols and numbers."
    if spec.question == "equivalent":
        yield f"The reference itself, written again, is {'an answer' if spec.copies == 'allowed' else 'refused'}."
    if spec.division == "guarded":
        yield "A division by zero must be impossible wherever the result matters."
    else:
        yield "A division by zero has some value, any, as in SMT-LIB."
    yield "Int and Real are unbounded and exact; div and mod leave no negative remainder; bit vectors wrap around."
    second = {"required": "has to agree", "if_available": "must not contradict", "none": "is not asked"}
    yield f"A second solver {second[spec.second]}; each question to a solver may take {spec.effort} steps."


def _lean(spec: LeanSpec) -> Iterator[str]:
    try:
        name = read_statement(spec).full_name
    except SpecError as error:
        yield f"A statement that cannot be read: {error}"
    else:
        yield f"A proof, which Lean's kernel accepts, of the theorem {name} as it stands here:"
    yield from quoted(spec.statement)
    yield "Names mean what the imports and the definitions above make of them, and nothing else is assumed."
    yield "What stands before the last colon of the theorem's head is assumed, or true for every value of it."
    if spec.imports:
        yield f"A proof may also import: {', '.join(spec.imports)}."
    if spec.require_replay:
        yield "Every declaration has to be accepted a second time, by a kernel that never ran the proof."
    yield f"It has {spec.seconds:g} s, {spec.memory_mib} MiB and {spec.heartbeats} heartbeats to compile."
