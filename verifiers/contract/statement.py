"""Parts of an artifact's statement, as far as a verdict supports them. Pure.

Invariants: no part has a higher assurance than its verdict's basis allows (`tested` never becomes `proved`). The
verdict may come from a third party's bundle: only evidence of the expected type is read, and all its text is clipped;
the displaying code escapes it.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from verifiers.contract.spec_data import SpecData
from verifiers.contract.text import one_line
from verifiers.contract.verdict import Ground, Verdict


class Assurance(StrEnum):
    """Support for a part of an artifact's statement, strongest first."""

    PROVED = "proved"
    """Formal verifier: a kernel, a solver's certificate, an exact decision."""
    TESTED = "tested"
    """Held on the inputs that were run; says nothing about other inputs."""
    JUDGED = "judged"
    """Opinion of a model, with a capped weight."""
    VALIDATED = "validated"
    """Signature of a person."""
    OPEN = "not verified"


class StatementPart(SpecData):
    """One part of an artifact's statement."""

    part: str
    standing: Assurance
    by: str
    """The verifier and its version, the person, or the reason why nobody verified it."""
    needed: bool = True
    """True if the artifact's mark rests on this part; False for a limit or an additional opinion."""


class Verified(NamedTuple):
    """Parts of a statement that a verdict covers, and its limits."""

    parts: list[StatementPart]
    limits: list[StatementPart]


def decided(verdict: Verdict, part: str, detail: str = "") -> StatementPart:
    """Returns a part of an artifact's statement that a verdict supports, with the assurance its basis allows."""
    by = ", ".join(filter(None, [one_line(f"{verdict.verifier} {verdict.version}"), detail]))
    if verdict.ground is Ground.PROVED:
        return StatementPart(part=part, standing=Assurance.PROVED, by=by)
    if verdict.ground is not Ground.TESTED:  # a pass recorded before verdicts had a basis
        by = f"{by}; its basis was not recorded"
    return StatementPart(part=part, standing=Assurance.TESTED, by=by)


def not_covered(part: str, why: str, *, needed: bool = False) -> StatementPart:
    """Returns a part of an artifact's statement that nobody verified."""
    return StatementPart(part=part, standing=Assurance.OPEN, by=why, needed=needed)


def given() -> StatementPart:
    """Returns the part that no check against an expected answer covers: that the expected answer is right."""
    return not_covered("that the expected answer is right", "it came with the job and was not derived here")
