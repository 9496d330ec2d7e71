"""Near misses of the expected text that a check should reject. Pure: the verifier decides each."""

from __future__ import annotations

from verifiers.contract import examples as e
from verifiers.exact.spec import ExactSpec


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
