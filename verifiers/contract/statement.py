"""What an artifact says of itself, part by part, as far as a verdict carries it. Pure.

What always holds: no part stands higher than the ground of its verdict lets it (`tested` never becomes `proved`). The
verdict may come from somebody else's bundle: of its evidence only what has the expected type is read, and all text from
there is clipped; whoever shows it escapes it.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from verifiers.contract.spec_data import SpecData
from verifiers.contract.text import one_line
from verifiers.contract.verdict import Ground, Verdict


class Assurance(StrEnum):
    """What carries a part of an artifact's statement, from the strongest down."""

    PROVED = "proved"
    """A formal verifier: a kernel, a solver's certificate, an exact decision."""
    TESTED = "tested"
    """Held on the inputs that were run, and says nothing of the others."""
    JUDGED = "judged"
    """A model's opinion, with its capped weight."""
    VALIDATED = "validated"
    """A person's signature."""
    OPEN = "not verified"


class StatementPart(SpecData):
    """One part of what an artifact's statement says."""

    part: str
    standing: Assurance
    by: str
    """The verifier and its version, the person, or the reason why nobody."""
    needed: bool = True
    """Whether the artifact's mark rests on it. False for what the statement says beside: a limit, a further opinion."""


class Verified(NamedTuple):
    """What a verdict carries, and what it says nothing about."""

    parts: list[StatementPart]
    limits: list[StatementPart]


def decided(verdict: Verdict, part: str, detail: str = "") -> StatementPart:
    """A part that this verdict carries, as strongly as its ground lets it."""
    by = ", ".join(filter(None, [one_line(f"{verdict.verifier} {verdict.version}"), detail]))
    if verdict.ground is Ground.PROVED:
        return StatementPart(part=part, standing=Assurance.PROVED, by=by)
    if verdict.ground is not Ground.TESTED:  # a pass from before verdicts had grounds
        by = f"{by}; its ground was not recorded"
    return StatementPart(part=part, standing=Assurance.TESTED, by=by)


def not_covered(part: str, why: str, *, needed: bool = False) -> StatementPart:
    """A part that nobody verified."""
    return StatementPart(part=part, standing=Assurance.OPEN, by=why, needed=needed)


def given() -> StatementPart:
    """The limit of every check that compares with an expected answer."""
    return not_covered("that the expected answer is right", "it came with the job, and nobody derived it here")
