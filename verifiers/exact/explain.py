"""Description of an exact spec, the statement parts its verdict covers, and near misses to reject. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from verifiers.contract import examples as e
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


def examples(spec: ExactSpec, answer: str | None, try_: e.AskVerifier) -> e.ExampleReport:
    text = spec.expected
    inputs = [
        *e.of_the_job(spec, answer),
        e.ExampleInput("example", e.EXPECTED, spec, text),
        e.ExampleInput("example", "with surrounding white space", spec, f"  {text} "),
        e.ExampleInput("mutant", "with upper and lower case swapped", spec, text.swapcase()),
        e.ExampleInput("mutant", "without its last character", spec, text[:-1]),
        e.ExampleInput("mutant", "with a trailing full stop", spec, f"{text}."),
        e.ExampleInput("mutant", "empty", spec, ""),
    ]
    tried = try_(e.distinct(inputs, text))
    return e.ExampleReport(tuple(tried), e.refused(tried, e.EXPECTED, e.REFUSED))
