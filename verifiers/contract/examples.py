"""Example submissions that show a person what a check accepts and rejects. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

from verifiers.contract.spec_data import SpecModel
from verifiers.contract.text import clip


class ExampleInput(NamedTuple):
    """A submission to put to the verifier."""

    sort: Literal["example", "mutant"]
    """`example`: close to what is wanted. `mutant`: altered, so that a strict check rejects it."""
    what: str
    """Description of the submission, for people."""
    spec: SpecModel
    """The job's own spec, or an altered one where the mutant alters the claim itself."""
    submission: str
    shown: str = ""
    """Text displayed instead of the submission, if the submission is not informative."""


class CheckedExample(NamedTuple):
    """An example with the verifier's verdict; `evidence` comes from the verdict."""

    given: ExampleInput
    outcome: str
    reason: str
    evidence: dict[str, object]
    ground: str = ""

    @property
    def accepted(self) -> bool:
        return self.outcome == "pass"


AskVerifier = Callable[[Sequence[ExampleInput]], list[CheckedExample]]
"""Checks examples in order; leaves out those that did not fit into the time limit."""


class ExampleReport(NamedTuple):
    """The examples of one check, with remarks for the reader."""

    examples: tuple[CheckedExample, ...]
    first: tuple[str, ...] = ()
    """Warnings to print before the examples."""
    notes: tuple[str, ...] = ()
    """Remarks about examples that could not be made."""


EXPECTED = "the expected answer as it stands"
REFUSED = "THE EXPECTED ANSWER ITSELF IS REFUSED"


def of_the_job(spec: SpecModel, answer: str | None) -> list[ExampleInput]:
    """Returns the job's own answer as an example, or an empty list without an answer."""
    return [ExampleInput("example", "the job's answer", spec, answer)] if answer is not None else []


def refused(tried: Sequence[CheckedExample], what: str, message: str) -> tuple[str, ...]:
    """Returns a warning line if the example labelled `what`, which must pass, was rejected; else nothing."""
    found = next((one for one in tried if one.given.what == what), None)
    if found is None or found.accepted or found.outcome == "infra_error" or found.ground == "timeout":
        return ()
    return (f"{message}: {clip(found.reason, 400)}",)


def distinct(inputs: Sequence[ExampleInput], expected: str = "") -> list[ExampleInput]:
    """Drops duplicate example inputs, keeping the first, and mutants equal to the expected text."""
    seen: set[tuple[SpecModel, str]] = set()
    unique = []
    for each in inputs:
        key = (each.spec, each.submission)
        if key in seen or (each.sort == "mutant" and expected and each.submission.strip() == expected.strip()):
            continue
        seen.add(key)
        unique.append(each)
    return unique
