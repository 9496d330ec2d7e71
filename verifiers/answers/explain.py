"""Plain description of an expected answer, and the statement parts its verdict covers. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from verifiers.answers.spec import AnswerSpec
from verifiers.contract.statement import StatementPart, Verified, decided, given, not_covered
from verifiers.contract.text import quoted
from verifiers.contract.verdict import Verdict

FORMS = {
    "equal": "Any notation is accepted, even if something is left to compute.",
    "worked_out": "Nothing may be left to compute that the expected answer has computed.",
    "simplified": "It must be simplified: lowest terms, denested radicals, like terms collected.",
    "same": "It must be written like the expected answer, apart from notation: for 1/2, 0.5 is refused.",
}
UNITS = {
    "as_expected": "A unit is required exactly if the expected answer has one; compatible units are converted.",
    "optional": "A unit may be missing.",
    "ignored": "Units are ignored: 5 m and 5 s are both 5.",
}
SYMBOLS = {
    "real": "Symbols are real numbers: sqrt(x^2) is |x|.",
    "complex": "Symbols are complex numbers.",
    "positive": "Symbols are positive numbers: sqrt(x^2) is x.",
    "integer": "Symbols are whole numbers.",
}


def explain(spec: AnswerSpec) -> Iterator[str]:
    if spec.notation == "digits":
        yield f"The answer must be the whole number {spec.expected}, in decimal digits with at most a sign."
        yield f"{spec.expected}.0, a sum or a word for it is refused."
        return
    if spec.notation == "plain":
        yield "The answer must be one expression that is mathematically equal to this:"
    else:
        yield "The answer must be equivalent to this:"
    yield from quoted(spec.expected)
    if spec.final == "boxed":
        yield "It is taken from the text's only \\boxed{...}; a text with none or with several is refused."
    else:
        yield "The whole submission is the answer."
    yield FORMS[spec.form]
    for amount, what in ((spec.absolute, "of it"), (spec.relative, "of it, as a share of its value")):
        if amount:
            yield f"A number or coefficient within {amount} {what} is accepted as well, and so is a closed form."
    if not (spec.absolute or spec.relative):
        yield "Approximations are refused: 0.33 is not 1/3."
    if spec.notation == "any":
        if spec.order == "any":
            yield "A list in brackets may come in any order."
        else:
            yield "A list in brackets must come in this order; sets, and lists without brackets, in any."
        yield UNITS[spec.units]
    if spec.variables is None and spec.notation == "any":
        yield "Allowed symbols: those of the expected answer."
    elif spec.variables:
        yield f"Allowed symbols: {', '.join(spec.variables)}."
    else:
        yield "No symbols are allowed."
    yield SYMBOLS[spec.domain]


def parts(spec: AnswerSpec, verdict: Verdict) -> Verified:
    return Verified(_compared(spec, verdict), [given()])


def _compared(spec: AnswerSpec, verdict: Verdict) -> list[StatementPart]:
    if spec.notation == "digits":
        return [decided(verdict, "that the answer is the expected integer")]
    near = [
        f"{amount} {what}" for amount, what in ((spec.absolute, "of it"), (spec.relative, "as a share of it")) if amount
    ]
    if not near:
        return [decided(verdict, "that the answer is equal to the expected one", "exact")]
    within = f"that the answer, in each of its numbers, is within {' or '.join(near)} of the expected one"
    return [
        decided(verdict, within),
        not_covered("that it is equal to the expected one", "the check asks for a tolerance only"),
    ]
