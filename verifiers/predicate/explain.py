"""Plain description of a predicate spec, and the statement parts its verdict covers. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from verifiers.contract.statement import Verified, decided, not_covered
from verifiers.contract.text import one_line, quoted
from verifiers.contract.verdict import Verdict
from verifiers.predicate.spec import PredicateSpec

NUMBERS = {
    "integer": "whole numbers: 0, 1, -1, 2, ...; 1/2 and 0.5 are excluded",
    "rational": "rational numbers; sqrt(2) is excluded",
    "real": "real numbers: integers, fractions, decimals and roots; i is excluded",
    "complex": "complex numbers, including i",
}


def explain(spec: PredicateSpec) -> Iterator[str]:
    yield f"The answer must be a value of {spec.variable} that makes this true:"
    yield from quoted(spec.predicate)
    yield f"{spec.variable} ranges over the {NUMBERS[spec.domain]}."
    yield "Any such value is accepted; it need not be the only one."


def visible(spec: PredicateSpec) -> str:
    return spec.predicate


def parts(spec: PredicateSpec, verdict: Verdict) -> Verified:
    what = f"that the answer, put in for {spec.variable}, makes `{one_line(spec.predicate)}` true"
    only = not_covered("that there is no other answer", "the check takes any value that makes it true")
    return Verified([decided(verdict, what, f"among {spec.domain} numbers")], [only])
