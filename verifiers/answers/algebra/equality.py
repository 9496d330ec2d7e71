"""Says what a comparison found: proved equal, proved different, or open. Never "close enough".

Rational numbers are compared exactly. Otherwise: at fixed points, enclosures that do not touch prove a difference and
name the witness; equality needs a symbolic proof *and* a point at which both sides certainly have a value, because a
rewriting may quietly cancel what was never defined, as in 5 + 0/(sin(x)^2 + cos(x)^2 - 1).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum


class Truth(StrEnum):
    EQUAL = "equal"
    DIFFERENT = "different"
    OPEN = "open"


@dataclass(frozen=True)
class EqualityFinding:
    truth: Truth
    because: str
    witness: dict[str, str] = field(default_factory=dict)
    """For a difference of expressions with symbols: the point at which they differ."""


def equal(because: str, witness: dict[str, str] | None = None) -> EqualityFinding:
    return EqualityFinding(Truth.EQUAL, because, witness or {})


def different(because: str, witness: dict[str, str] | None = None) -> EqualityFinding:
    return EqualityFinding(Truth.DIFFERENT, because, witness or {})


def undecided(because: str) -> EqualityFinding:
    return EqualityFinding(Truth.OPEN, because)


def decided(findings: Iterable[EqualityFinding], because: str) -> EqualityFinding:
    """Joins findings that must all be equal: the first difference settles it, otherwise the first that is open."""
    opened: EqualityFinding | None = None
    for finding in findings:
        if finding.truth is Truth.DIFFERENT:
            return finding
        if finding.truth is Truth.OPEN:
            opened = opened or finding
    return opened or equal(because)
