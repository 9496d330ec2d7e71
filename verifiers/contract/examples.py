"""What a verifier is asked about so that a person sees what a check accepts and what it rejects. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

from verifiers.contract.spec_data import SpecModel
from verifiers.contract.text import clip


class ExampleInput(NamedTuple):
    """A submission that the verifier is asked about."""

    sort: Literal["example", "mutant"]
    """`example`: something like what is wanted. `mutant`: something changed, which a sharp check rejects."""
    what: str
    """How it was made."""
    spec: SpecModel
    """The job's own, or a changed one where the claim itself is what is changed."""
    submission: str
    shown: str = ""
    """In place of the submission, where that says nothing."""


class CheckedExample(NamedTuple):
    """An example with what the verifier said of it; `evidence` is the verdict's."""

    given: ExampleInput
    outcome: str
    reason: str
    evidence: dict[str, object]
    ground: str = ""

    @property
    def accepted(self) -> bool:
        return self.outcome == "pass"


AskVerifier = Callable[[Sequence[ExampleInput]], list[CheckedExample]]
"""Asks the verifier, in order; what there was no time for is left out."""


class ExampleReport(NamedTuple):
    """What came of it, for one check."""

    examples: tuple[CheckedExample, ...]
    first: tuple[str, ...] = ()
    """To be said before anything else."""
    notes: tuple[str, ...] = ()
    """What could not be made."""


EXPECTED = "the expected answer as it stands"
REFUSED = "THE EXPECTED ANSWER ITSELF IS REFUSED"


def of_the_job(spec: SpecModel, answer: str | None) -> list[ExampleInput]:
    """What the job came to, where it came to anything."""
    return [ExampleInput("example", "the answer that the job came to", spec, answer)] if answer is not None else []


def refused(tried: Sequence[CheckedExample], what: str, message: str) -> tuple[str, ...]:
    """A line to be shown first when the thing made this way, which has to be accepted, is not."""
    found = next((one for one in tried if one.given.what == what), None)
    if found is None or found.accepted or found.outcome == "infra_error" or found.ground == "timeout":
        return ()
    return (f"{message}: {clip(found.reason, 400)}",)


def distinct(inputs: Sequence[ExampleInput], expected: str = "") -> list[ExampleInput]:
    """None twice, the first of each; no mutant that is the expected text."""
    seen: set[tuple[SpecModel, str]] = set()
    unique = []
    for each in inputs:
        key = (each.spec, each.submission)
        if key in seen or (each.sort == "mutant" and expected and each.submission.strip() == expected.strip()):
            continue
        seen.add(key)
        unique.append(each)
    return unique
