"""Near misses of the expected text that a check should reject. Pure: the verifier decides each."""

from __future__ import annotations

from verifiers.contract import examples as e
from verifiers.exact.spec import ExactSpec


def examples(spec: ExactSpec, answer: str | None, try_: e.AskVerifier) -> e.ExampleReport:
    text = spec.expected
    inputs = [
        *e.of_the_job(spec, answer),
        e.ExampleInput("example", e.EXPECTED, spec, text),
        e.ExampleInput("example", "with white space around it", spec, f"  {text} "),
        e.ExampleInput("mutant", "in other letters, large for small", spec, text.swapcase()),
        e.ExampleInput("mutant", "without its last character", spec, text[:-1]),
        e.ExampleInput("mutant", "with a full stop behind it", spec, f"{text}."),
        e.ExampleInput("mutant", "nothing at all", spec, ""),
    ]
    tried = try_(e.distinct(inputs, text))
    return e.ExampleReport(tuple(tried), e.refused(tried, e.EXPECTED, e.REFUSED))
