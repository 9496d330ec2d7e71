"""Plain description of an expected answer, and the statement parts its verdict covers. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from verifiers.answers.spec import AnswerSpec
from verifiers.contract.statement import StatementPart, Verified, decided, given, not_covered
from verifiers.contract.text import quoted
from verifiers.contract.verdict import Verdict

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


def explain(spec: AnswerSpec) -> Iterator[str]:
    if spec.notation == "digits":
        yield f"The answer has to be the whole number {spec.expected}, in decimal digits with at most a sign."
        yield f"{spec.expected}.0, a sum or a word for it is refused."
        return
    if spec.notation == "plain":
        yield "The answer has to be one expression that is mathematically equal to this:"
    else:
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
    if spec.notation == "any":
        if spec.order == "any":
            yield "A list in brackets may come in any order."
        else:
            yield "A list in brackets has to come in this order; sets, and lists without brackets, in any."
        yield UNITS[spec.units]
    if spec.variables is None and spec.notation == "any":
        yield "Symbols that may occur in it: those of the expected answer."
    elif spec.variables:
        yield f"Symbols that may occur in it: {', '.join(spec.variables)}."
    else:
        yield "No symbol may occur in it."
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
    within = f"that the answer, where it is a decimal, is within {' or '.join(near)} of the expected one"
    return [
        decided(verdict, within),
        not_covered("that it is equal to the expected one", "the check asks for a tolerance only"),
    ]
