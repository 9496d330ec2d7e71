"""What the gates look at: one evaluation, the people's words on it, and what was in service at the time.

Plain fields only, so that a decision can be made again from its stored evidence by somebody who has nothing else.
Times are UTC in ISO 8601.
"""

from __future__ import annotations

from typing import Literal

from policies.decision import Record


class PairedItem(Record):
    """One sealed question, answered by both. None where broken infrastructure lost the answer."""

    task: str
    family: str
    champion_passed: bool | None
    candidate_passed: bool | None

    @property
    def counts(self) -> bool:
        """Whether both answers were judged: only then does the item say anything."""
        return self.champion_passed is not None and self.candidate_passed is not None

    @property
    def gained(self) -> bool:
        return self.champion_passed is False and self.candidate_passed is True

    @property
    def lost(self) -> bool:
        return self.champion_passed is True and self.candidate_passed is False


class Word(Record):
    """What a person said, and about which decision."""

    person: str
    verdict: Literal["approve", "reject"]
    decision: str
    """Digest of the decision that the person was shown."""
    at: str


class Evidence(Record):
    evaluation: str
    candidate: str
    champion: str
    in_service: str | None
    """The champion now, which may be another than the one evaluated; None when nothing is in service yet."""
    sealed_set: str
    """Digest of the questions that were to be asked."""
    candidate_asked: str
    """Digest of the questions that the candidate was asked, in order."""
    champion_asked: str
    candidate_temperature: float
    champion_temperature: float
    items: tuple[PairedItem, ...]
    evaluated_at: str
    words: tuple[Word, ...] = ()
    """Oldest first."""
    shown: tuple[str, ...] = ()
    """Digests of the decisions on this very evaluation under this very policy: what a person can have been shown."""


class Pairs(Record):
    """Counts over the items that both sides answered."""

    items: int
    gained: int
    lost: int

    @property
    def gain(self) -> float:
        """Points of 100; 0 without items."""
        return 100 * (self.gained - self.lost) / self.items if self.items else 0.0


def pairs(items: tuple[PairedItem, ...], family: str | None = None) -> Pairs:
    """The counts of all items, or of one family's."""
    counted = [item for item in items if item.counts and family in (None, item.family)]
    return Pairs(
        items=len(counted), gained=sum(item.gained for item in counted), lost=sum(item.lost for item in counted)
    )
