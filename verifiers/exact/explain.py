"""Plain description of an exact spec, and the statement parts its verdict covers. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from verifiers.contract.statement import Verified, decided, given
from verifiers.contract.text import quoted
from verifiers.contract.verdict import Verdict
from verifiers.exact.spec import ABSTAINED, ExactSpec


def explain(spec: ExactSpec) -> Iterator[str]:
    yield "The answer must be exactly this text, apart from surrounding white space:"
    yield from quoted(spec.expected)
    if spec.abstention:
        yield f"This answer abstains: it fails, but with a score of {ABSTAINED:g}:"
        yield from quoted(spec.abstention)


def parts(_spec: ExactSpec, verdict: Verdict) -> Verified:
    return Verified([decided(verdict, "that the answer is the expected text")], [given()])
