"""Plain description of a predicate spec, and the statement parts its verdict covers. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from verifiers.contract.statement import Verified, decided, not_covered
from verifiers.contract.text import one_line, quoted
from verifiers.contract.verdict import Verdict
from verifiers.predicate.spec import PredicateSpec

NUMBERS = {
    "integer": "whole numbers: 0, 1, -1, 2, ...; 1/2 and 0.5 are not among them",
    "rational": "fractions of whole numbers; sqrt(2) is not among them",
    "real": "real numbers: whole ones, fractions, decimals and roots; i is not among them",
    "complex": "complex numbers, i among them",
}


def explain(spec: PredicateSpec) -> Iterator[str]:
    yield f"The answer has to be one value for {spec.variable} that makes this true:"
    yield from quoted(spec.predicate)
    yield f"{spec.variable} is looked for among the {NUMBERS[spec.domain]}."
    yield "Any such value is accepted; whether there are others is not asked."


def visible(spec: PredicateSpec) -> str:
    return spec.predicate


def parts(spec: PredicateSpec, verdict: Verdict) -> Verified:
    what = f"that the answer, put in for {spec.variable}, makes `{one_line(spec.predicate)}` true"
    only = not_covered("that there is no other answer", "the check takes any value that makes it true")
    return Verified([decided(verdict, what, f"among {spec.domain} numbers")], [only])
