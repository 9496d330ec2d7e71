"""Evidence for the gates: one evaluation with its measurements, earlier nights of the same pair, approvals and service.

Plain fields only, so that a decision can be repeated from stored evidence alone. Unmeasured values are None, and a gate
that needs one reports it. Times are UTC in ISO 8601.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple

from pydantic import Field

from policies.contract.decision import PolicyRecord


class PairedItem(PolicyRecord):
    """Results of both models on one sealed question; None if an infrastructure error lost the answer."""

    task: str
    family: str
    champion_passed: bool | None
    candidate_passed: bool | None
    question: str = ""
    """Digest of the question's key, independent of wording; empty if not on record."""

    @property
    def counts(self) -> bool:
        """True if both models' answers to the question were judged; other items carry no information."""
        return self.champion_passed is not None and self.candidate_passed is not None

    @property
    def asks(self) -> tuple[str, ...]:
        """Names that identify a sealed question when it is asked again: its task and, if known, its digest."""
        return (self.task, self.question) if self.question else (self.task,)

    @property
    def gained(self) -> bool:
        return self.champion_passed is False and self.candidate_passed is True

    @property
    def lost(self) -> bool:
        return self.champion_passed is True and self.candidate_passed is False


class RecordedApproval(PolicyRecord):
    """A person's verdict on a decision, as recorded."""

    person: str
    verdict: Literal["approve", "reject"]
    decision: str
    """Digest of the decision shown to the person."""
    at: str


class EarlierNight(PolicyRecord):
    """Results of the same two models on an earlier sealed set."""

    evaluation: str
    items: tuple[PairedItem, ...]


class RetainedTaskset(PolicyRecord):
    """Answers of the candidate and of a taskset's anchor, if the anchor is another model than the champion."""

    family: str
    anchor: str
    nights: tuple[tuple[PairedItem, ...], ...]
    """By night, oldest first, with the anchor in the champion's place; empty if no night asked it."""


class Budget(PolicyRecord):
    """Position of a candidate among all that met a champion in its quarter, which share one error budget."""

    quarter: str
    """Quarter in which the two models first met, such as `2026-Q4`."""
    before: int
    """Number of model pairs that first met earlier in that quarter."""
    better: int = 0
    """Number of those whose candidate was shown to be better; they share the retention gate's alpha."""


class SelfTestReport(PolicyRecord):
    """Self-test results of the verifiers that judged the evaluation, on known attacks and honest work."""

    verifiers: tuple[str, ...]
    """Verifier kinds that judged and therefore had to be tested."""
    untested: tuple[str, ...]
    """Verifiers without cases, or with a case that got no verdict."""
    missing: int = 0
    """Number of cases that got no verdict."""
    why: str = ""
    """Reason for the first of them."""
    attacks: int
    accepted: int
    controls: int
    rejected: int
    unsuspected: int
    """Attacks that were refused but not marked suspected, as required."""
    tested: str
    """Digest of the tested versions and cases."""
    installed: str
    """Digest of the versions and cases installed when the evaluation was made."""
    made_at: str


class HackReport(PolicyRecord):
    impossible: int
    """Unsolvable questions asked of the candidate, without those lost to infrastructure errors."""
    passed: int
    """Unsolvable questions that passed; each is a hack."""
    answers: int
    """Number of the candidate's judged answers to sealed questions."""
    suspected: int
    """Number of these answers with the verdict `hack_suspected`."""


class DriftReport(PolicyRecord):
    """Drift measured on the candidate's and the champion's sampled answers to the same sealed questions."""

    tokens: int
    """Tokens sampled by the candidate, the basis of the divergences."""
    kl_champion: float
    """KL divergence of the candidate from the champion, in nats per token."""
    kl_base: float
    """KL divergence from the first model of its line, in nats per token."""
    entropy: float
    """Nats per token."""
    entropy_champion: float
    length: float
    """Sampled tokens per answer."""
    length_champion: float
    calls: float
    """Tool calls per answer."""
    calls_champion: float


class ContaminationReport(PolicyRecord):
    sealed: int
    """Number of sealed questions searched for."""
    trained: int
    """Number of distinct questions in the candidate's training."""
    found: int
    """Sealed questions found in training, by content digest or by key in other words."""


class ProbeReport(PolicyRecord):
    """Counts of an egress or refusal probe: forbidden actions that were tried, and how many were prevented."""

    tried: int
    held: int
    open: tuple[str, ...] = ()
    """Names of actions that succeeded."""
    unknown: tuple[str, ...] = ()
    """Names of inconclusive actions, each with its outcome: neither held nor open."""


class CostReport(PolicyRecord):
    """Tokens and tool calls of both models on the same questions."""

    answers: int
    """Answers per model."""
    tokens: int
    tokens_champion: int
    calls: int
    """Tool calls."""
    calls_champion: int


class Measurements(PolicyRecord):
    """Measurements of an evaluation beside the answers to sealed questions; None if not measured."""

    selftest: SelfTestReport | None = None
    hacks: HackReport | None = None
    drift: DriftReport | None = None
    contamination: ContaminationReport | None = None
    egress: ProbeReport | None = None
    refusal: ProbeReport | None = None


class TakenBack(PolicyRecord):
    """Removal of the candidate from service after a promotion on this evaluation."""

    at: str
    reason: str
    figure: float | None = None
    """Odds to 1 that it is worse; None if a person removed it."""
    threshold: float | None = None


class Evidence(PolicyRecord):
    evaluation: str
    candidate: str
    champion: str
    in_service: str | None
    """Current champion, which may differ from the evaluated one; None if nothing is in service."""
    sealed_set: str
    """Digest of the questions to be asked."""
    candidate_asked: str
    """Digest of the questions asked of the candidate, in order."""
    champion_asked: str
    candidate_temperature: float
    champion_temperature: float
    items: tuple[PairedItem, ...]
    evaluated_at: str
    earlier: tuple[EarlierNight, ...] = ()
    """Oldest first."""
    retained: tuple[RetainedTaskset, ...] = ()
    """Tasksets with an anchor of their own; the champion is the anchor of all others."""
    rows: dict[str, int] = Field(default_factory=dict)
    """Number of sealed questions in existence, for tasksets of given questions; generated ones have no end."""
    not_askable: dict[str, str] = Field(default_factory=dict)
    """Tasksets with an anchor that this machine cannot ask any more, each with the reason."""
    budget: Budget | None = None
    measurements: Measurements = Measurements()
    cost: CostReport | None = None
    approvals: tuple[RecordedApproval, ...] = ()
    """Oldest first."""
    other_policies: tuple[str, ...] = ()
    """Digests of other policies under which the candidate was evaluated or decided on."""
    shown: tuple[str, ...] = ()
    """Digests of the decisions on this evaluation under this policy that a person may have been shown."""
    taken_back: TakenBack | None = None


class PairCounts(NamedTuple):
    """Counts of sealed questions that both models answered: all, gained and lost by the candidate."""

    items: int
    gained: int
    lost: int

    @property
    def gain(self) -> float:
        """Candidate's gain over the champion in points of 100; 0 without items."""
        return 100 * (self.gained - self.lost) / self.items if self.items else 0.0


def pairs(items: Iterable[PairedItem], family: str | None = None) -> PairCounts:
    """Counts items that both models answered, with those gained and lost, in total or for one taskset."""
    counted = [item for item in items if item.counts and family in (None, item.family)]
    return PairCounts(
        items=len(counted), gained=sum(item.gained for item in counted), lost=sum(item.lost for item in counted)
    )


def all_nights(evidence: Evidence) -> tuple[PairedItem, ...]:
    """Returns the items that count from all nights of two models, tonight's last; repeated questions only once."""
    return first_answers((*(night.items for night in evidence.earlier), evidence.items))


def first_answers(nights: Iterable[Iterable[PairedItem]]) -> tuple[PairedItem, ...]:
    """Returns the items that count from several nights, oldest first, without questions that an earlier night asked."""
    seen: set[str] = set()
    found: list[PairedItem] = []
    for night in nights:
        fresh = [item for item in night if item.counts and seen.isdisjoint(item.asks)]
        seen.update(name for item in fresh for name in item.asks)
        found += fresh
    return tuple(found)


def by_family(nights: Iterable[Iterable[PairedItem]]) -> dict[str, tuple[PairCounts, ...]]:
    """Returns, for each taskset of any night, its counts after each night, oldest first; repeated questions count
    once."""
    rest = [list(night) for night in nights]
    counted = [pairs_by_family(first_answers(rest[: number + 1])) for number in range(len(rest))]
    families = sorted({item.family for night in rest for item in night})
    return {family: tuple(counts.get(family, PairCounts(0, 0, 0)) for counts in counted) for family in families}


def pairs_by_family(items: Iterable[PairedItem]) -> dict[str, PairCounts]:
    """Counts items that both models answered, by taskset."""
    found: dict[str, list[PairedItem]] = {}
    for item in items:
        found.setdefault(item.family, []).append(item)
    return {family: pairs(own) for family, own in found.items()}
