"""What the gates look at: one evaluation with what was measured beside it, earlier nights of the same two models, the
people's approvals, and what was in service at the time.

Plain fields only, so that a decision can be made again from its stored evidence by somebody who has nothing else. What
was not measured is None, and a gate that needs it says so. Times are UTC in ISO 8601.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple

from policies.contract.decision import PolicyRecord


class PairedItem(PolicyRecord):
    """One sealed question, answered by both. None where broken infrastructure lost the answer."""

    task: str
    family: str
    champion_passed: bool | None
    candidate_passed: bool | None
    question: str = ""
    """What is asked, whatever the words, as a digest; empty where that is not on record."""

    @property
    def counts(self) -> bool:
        """Whether both answers were judged: only then does the item say anything."""
        return self.champion_passed is not None and self.candidate_passed is not None

    @property
    def asks(self) -> tuple[str, ...]:
        """The names by which it is known when it is asked again."""
        return (self.task, self.question) if self.question else (self.task,)

    @property
    def gained(self) -> bool:
        return self.champion_passed is False and self.candidate_passed is True

    @property
    def lost(self) -> bool:
        return self.champion_passed is True and self.candidate_passed is False


class RecordedApproval(PolicyRecord):
    """What a person said, and about which decision."""

    person: str
    verdict: Literal["approve", "reject"]
    decision: str
    """Digest of the decision that the person was shown."""
    at: str


class EarlierNight(PolicyRecord):
    """The same two models on another sealed set, some nights ago."""

    evaluation: str
    items: tuple[PairedItem, ...]


class Budget(PolicyRecord):
    """Where this candidate stands among all that met a champion in its quarter."""

    quarter: str
    """Such as `2026-Q4`: the one in which the two models first met."""
    before: int
    """Pairs of models that met for the first time earlier in that quarter."""


class SelfTestReport(PolicyRecord):
    """What the verifiers that judged the evaluation did with known attacks and honest work."""

    verifiers: tuple[str, ...]
    """Kinds that had to be tested: those that judged."""
    untested: tuple[str, ...]
    """Of these, the ones with a case that got no verdict, or with none at all."""
    attacks: int
    accepted: int
    controls: int
    rejected: int
    unsuspected: int
    """Attacks that were refused and had to be called suspected, and were not."""
    tested: str
    """Digest of the versions and cases that were tested."""
    installed: str
    """Digest of those in use when the evaluation was made."""
    made_at: str


class HackReport(PolicyRecord):
    impossible: int
    """Questions that cannot be solved, asked of the candidate; without those lost to broken infrastructure."""
    passed: int
    """Of these. Each is a hack."""
    answers: int
    """The candidate's judged answers to sealed questions."""
    suspected: int
    """Of these, the ones that a verifier called `hack_suspected`."""


class DriftReport(PolicyRecord):
    """From the candidate's sampled answers to the sealed questions, and the champion's to the same."""

    tokens: int
    """Sampled by the candidate: what the divergences rest on."""
    kl_champion: float
    """Nats a token, of the candidate from the champion."""
    kl_base: float
    """Likewise, from the first model of its line."""
    entropy: float
    """Nats a token."""
    entropy_champion: float
    length: float
    """Sampled tokens an answer."""
    length_champion: float
    calls: float
    """Tool calls an answer."""
    calls_champion: float


class ContaminationReport(PolicyRecord):
    sealed: int
    """Sealed questions that were looked for."""
    trained: int
    """Different questions of the candidate's training."""
    found: int
    """Sealed questions among them, by content and by substance whatever the words."""


class ProbeReport(PolicyRecord):
    """Tries that must not succeed, and how many did not."""

    tried: int
    held: int
    open: tuple[str, ...] = ()
    """Names of those that succeeded."""
    unknown: tuple[str, ...] = ()
    """Names of those that ended in another way than by being denied, with how: neither held nor open."""


class CostReport(PolicyRecord):
    """On the same questions."""

    answers: int
    """Of each of the two."""
    tokens: int
    tokens_champion: int
    calls: int
    """Tool calls."""
    calls_champion: int


class Measurements(PolicyRecord):
    """What a night measured beside the answers. None: it was not measured."""

    selftest: SelfTestReport | None = None
    hacks: HackReport | None = None
    drift: DriftReport | None = None
    contamination: ContaminationReport | None = None
    egress: ProbeReport | None = None
    refusal: ProbeReport | None = None


class TakenBack(PolicyRecord):
    """Says that the candidate was in service on this evaluation, and was taken out of it."""

    at: str
    reason: str
    figure: float | None = None
    """Odds to 1 that it is worse; None where a person took it back."""
    threshold: float | None = None


class Evidence(PolicyRecord):
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
    earlier: tuple[EarlierNight, ...] = ()
    """Oldest first."""
    budget: Budget | None = None
    measurements: Measurements = Measurements()
    cost: CostReport | None = None
    approvals: tuple[RecordedApproval, ...] = ()
    """Oldest first."""
    other_policies: tuple[str, ...] = ()
    """Digests of policies, other than the one that decides, under which the candidate was evaluated or decided on."""
    shown: tuple[str, ...] = ()
    """Digests of the decisions on this very evaluation under this very policy: what a person can have been shown."""
    taken_back: TakenBack | None = None


class PairCounts(NamedTuple):
    """Counts over the items that both sides answered."""

    items: int
    gained: int
    lost: int

    @property
    def gain(self) -> float:
        """Points of 100; 0 without items."""
        return 100 * (self.gained - self.lost) / self.items if self.items else 0.0


def pairs(items: Iterable[PairedItem], family: str | None = None) -> PairCounts:
    """The counts of all items, or of one family's."""
    counted = [item for item in items if item.counts and family in (None, item.family)]
    return PairCounts(
        items=len(counted), gained=sum(item.gained for item in counted), lost=sum(item.lost for item in counted)
    )


def all_nights(evidence: Evidence) -> tuple[PairedItem, ...]:
    """The items of every night that count, tonight's last; of a question that was asked on several nights, in whatever
    words, the first answer: only fresh questions add anything."""
    return first_answers((*(night.items for night in evidence.earlier), evidence.items))


def first_answers(nights: Iterable[Iterable[PairedItem]]) -> tuple[PairedItem, ...]:
    """The items of these nights that count, oldest night first, without what an earlier one of them asked."""
    seen: set[str] = set()
    found: list[PairedItem] = []
    for night in nights:
        fresh = [item for item in night if item.counts and seen.isdisjoint(item.asks)]
        seen.update(name for item in fresh for name in item.asks)
        found += fresh
    return tuple(found)
