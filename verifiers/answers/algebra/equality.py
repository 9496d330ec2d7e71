"""Result of a comparison: proved equal, proved different, or open. Never "close enough".

Rational numbers are compared exactly. For others, disjoint enclosures at fixed points prove a difference and name the
witness; equality needs a symbolic proof *and* a point at which both sides certainly have a value, because a rewriting
may silently cancel an undefined part, as in 5 + 0/(sin(x)^2 + cos(x)^2 - 1).
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
    """Point at which expressions with symbols differ."""


def equal(because: str, witness: dict[str, str] | None = None) -> EqualityFinding:
    return EqualityFinding(Truth.EQUAL, because, witness or {})


def different(because: str, witness: dict[str, str] | None = None) -> EqualityFinding:
    return EqualityFinding(Truth.DIFFERENT, because, witness or {})


def undecided(because: str) -> EqualityFinding:
    return EqualityFinding(Truth.OPEN, because)


def decided(findings: Iterable[EqualityFinding], because: str) -> EqualityFinding:
    """Combines comparisons that must all find equality into one: the first difference, else an undecided one, else
    equality."""
    opened: EqualityFinding | None = None
    for finding in findings:
        if finding.truth is Truth.DIFFERENT:
            return finding
        if finding.truth is Truth.OPEN:
            opened = opened or finding
    return opened or equal(because)
