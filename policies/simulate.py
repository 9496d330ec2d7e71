"""Simulates nights under a policy to estimate false promotions and missed gains.

A null candidate is neither better nor worse: each discordant question falls to either side equally. A candidate with a
gain wins the share of them that makes up the gain. Questions are independent and spread evenly over the tasksets. Every
gate that does not depend on counts is assumed to pass, and a person to approve everything; real deployments promote
fewer null candidates. The champion is the anchor of every taskset, except in the losing quarter: there each candidate
is shown to be better, but loses the same points of one taskset again.

Outcomes come from the gates' own code, and the order of rules is that of `decide` (tested against it); only questions
are drawn as counts. About 100,000 nights take a few seconds, because equal counts are judged once. The first draw
imports numpy (see `policies.statistics`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING

from pydantic import ConfigDict, Field, model_validator

from policies.contract.decision import DecisionOutcome, GateFinding, GateOutcome, PolicyRecord
from policies.contract.evidence import PairCounts
from policies.decide import must_be_found, outcome_of
from policies.gates import evidence, improvement, non_regression, retention
from policies.gates.evidence import may_go_on, odds_outcome
from policies.gates.improvement import gain_outcome
from policies.gates.tasksets import NonRegressionRules, counts_outcome, nights_outcome
from policies.policy import Policy
from policies.statistics import of_questions, wilson
from policies.statistics.sequential import level_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Counts = NDArray[np.int64]


class Assumed(PolicyRecord):
    """Parameters of a simulation. Points and percent of 100."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    items: int = Field(800, ge=1, le=100_000)
    """Sealed questions per night."""
    families: int = Field(7, ge=1, le=100)
    """Number of tasksets that share the questions."""
    discordant: float = Field(20.0, gt=0, le=100)
    """Percentage of questions that only one model answers."""
    gain: float = Field(4.0, gt=0, le=100)
    """Points gained by the candidate to be found."""
    within: int = Field(5, ge=1, le=90)
    """Nights within which it should be promoted."""
    nights: int = Field(90, ge=1, le=400)
    """Nights per quarter."""
    quarters: int = Field(2_000, ge=1, le=100_000)
    """Quarters to simulate."""
    loss: float = Field(4.0, gt=0, lt=100)
    """Points of one taskset that each candidate of the losing quarter loses against its champion."""
    promotions: int = Field(12, ge=3, le=100)
    """Candidates of the losing quarter."""
    seed: int = Field(0, ge=0)
    """Seed of the random draws."""

    @model_validator(mode="after")
    def _fits(self) -> Assumed:
        if self.gain > self.discordant:
            raise ValueError(f"a gain of {self.gain:g} points needs at least {self.gain:g} % discordant questions")
        if self.items < self.families:
            raise ValueError("more families than questions")
        return self


class Simulated(PolicyRecord):
    """Results of a simulation. Shares are of 1; their intervals are Wilson's at 95 %."""

    assumed: Assumed
    null_promoted_share: float
    """Share of quarters that promoted a candidate without a real gain; the larger of the `fresh` and `held` shares."""
    null_promoted_low: float
    null_promoted_high: float
    null_promoted_share_fresh: float
    """Null share with a new candidate every night."""
    null_promoted_share_held: float
    """Null share with held candidates asked again, as the policy allows."""
    power: float
    """Share of candidates with the gain that were promoted within the nights."""
    power_low: float
    power_high: float
    found_by_night: tuple[float, ...]
    """Power after each night."""
    rejected_share: float
    """Share of candidates with the gain that were rejected within the nights."""
    stopped_share: float
    """Share of losing quarters in which the third losing candidate was never promoted."""
    stopped_share_before: float
    """The same without the gate `retention`."""
    lost_points: float
    """Mean points of the taskset that a losing quarter lost in all."""
    lost_points_before: float
    """The same without the gate `retention`."""


NightCounts = tuple[PairCounts, ...]
"""Counts of one candidate over its nights so far: all questions, then each taskset."""
Settled = tuple[GateOutcome, ...]
"""Outcome of each taskset on the first night that decided about it, for `non_regression` and then for `retention`."""


class SimulatedJudge:
    """Decides about simulated candidates by counts alone under one policy: other gates pass and everyone approves."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._rules = rules = policy.rules_of(evidence.GATE)
        gain, keep = policy.rules_of(improvement.GATE), policy.rules_of(non_regression.GATE)
        self._gates = [(non_regression.GATE.name, keep, keep.alpha)]
        if (retain := policy.gates.get(retention.GATE)) is not None:
            self._gates.append((retention.GATE.name, retain, level_of(retain.alpha, 1)))
        by_counts = {"improvement", "evidence", *(name for name, _, _ in self._gates)}
        self._given = tuple(
            GateFinding(gate=gate, outcome=GateOutcome.PASSED, figure=None, reason="")
            for gate in sorted(must_be_found(policy) - by_counts)
        )

        def drawn(counts: PairCounts) -> tuple[float, float]:
            # Simulated families are identical: resampling whole ones would give the same width.
            return of_questions(counts.gained, counts.lost, counts.items, alpha=gain.alpha)

        remembered = lru_cache(maxsize=500_000)
        self._gain = remembered(lambda counts: gain_outcome(counts, gain, lambda: drawn(counts)))
        self._odds = remembered(lambda counts, before: odds_outcome(counts, before, rules))
        self._tasksets = [
            remembered(lambda counts, rules=rules, level=level: counts_outcome(counts, rules, level))
            for _, rules, level in self._gates
        ]
        self.goes_on = remembered(lambda counts, nights: may_go_on(counts, nights, rules))
        self._outcome = lru_cache(maxsize=4_096)(self._outcome_of)

    def settled(self, counts: NightCounts, before: Settled = ()) -> Settled:
        """Returns the outcome of every taskset after a night, given those that earlier nights `settled`."""
        now = [(judge, family) for judge in self._tasksets for family in counts[1:]]
        known = before or (GateOutcome.UNDECIDED,) * len(now)
        return tuple(
            judge(family) if was is GateOutcome.UNDECIDED else was
            for (judge, family), was in zip(now, known, strict=True)
        )

    def outcome(self, counts: NightCounts, before: int, settled: Settled = ()) -> DecisionOutcome:
        """Returns the promotion decision for these counts with `before` earlier candidates in the quarter."""
        settled = settled or self.settled(counts)
        size = len(counts) - 1
        families = tuple(frozenset(settled[place * size : (place + 1) * size]) for place in range(len(self._tasksets)))
        odds = self._odds(counts[0], self._rules.candidates if before >= self._rules.candidates else 0)
        return self._outcome(self._gain(counts[0]), odds, families)

    def _outcome_of(
        self, gain: GateOutcome, odds: GateOutcome, families: tuple[frozenset[GateOutcome], ...]
    ) -> DecisionOutcome:
        counted = [("improvement", gain), ("evidence", odds)]
        for (gate, _, _), outcomes in zip(self._gates, families, strict=True):
            counted += [(f"{gate}/{outcome.value}", outcome) for outcome in sorted(outcomes)]
        found = [GateFinding(gate=gate, outcome=outcome, figure=None, reason="") for gate, outcome in counted]
        return outcome_of([*self._given, *found], self._policy)


def simulate(policy: Policy, assumed: Assumed, progress: Callable[[str], None] = lambda text: None) -> Simulated:
    """Simulates how a policy decides about candidates that gain nothing, and about better ones. `progress` receives a
    message per phase."""
    import numpy as np

    rng = np.random.default_rng(assumed.seed)
    judge = SimulatedJudge(policy)
    progress(f"{assumed.quarters} quarters of {assumed.nights} nights with candidates that are no better")
    fresh = held = 0
    for _ in range(assumed.quarters):
        drawn = _nights(rng, assumed, assumed.nights, 0.0)
        fresh += _null_quarter(judge, drawn, most_nights=1)
        held += _null_quarter(judge, drawn, most_nights=policy.rules_of(evidence.GATE).nights)
    progress(f"{assumed.quarters} candidates with a gain of {assumed.gain:g} points")
    found = [0] * assumed.within
    rejected = 0
    for _ in range(assumed.quarters):
        night, outcome = _search(judge, _nights(rng, assumed, assumed.within, assumed.gain / 100))
        if outcome is DecisionOutcome.PROMOTE:
            found[night] += 1
        rejected += outcome in (DecisionOutcome.REJECT, DecisionOutcome.QUARANTINE)
    progress(f"{assumed.quarters} quarters of candidates that each lose {assumed.loss:g} points of one taskset")
    before, after = (_losing_quarters(rng, policy, assumed, retained=retained) for retained in (False, True))
    fooled = max(fresh, held)
    null_low, null_high = wilson(fooled, assumed.quarters, alpha=0.05)
    low, high = wilson(sum(found), assumed.quarters, alpha=0.05)
    return Simulated(
        assumed=assumed,
        null_promoted_share=fooled / assumed.quarters,
        null_promoted_low=null_low,
        null_promoted_high=null_high,
        null_promoted_share_fresh=fresh / assumed.quarters,
        null_promoted_share_held=held / assumed.quarters,
        power=sum(found) / assumed.quarters,
        power_low=low,
        power_high=high,
        found_by_night=tuple(sum(found[: night + 1]) / assumed.quarters for night in range(assumed.within)),
        rejected_share=rejected / assumed.quarters,
        stopped_share=sum(number < THIRD for number in after) / assumed.quarters,
        stopped_share_before=sum(number < THIRD for number in before) / assumed.quarters,
        lost_points=assumed.loss * sum(after) / assumed.quarters,
        lost_points_before=assumed.loss * sum(before) / assumed.quarters,
    )


def _nights(rng: np.random.Generator, assumed: Assumed, nights: int, gain: float) -> Counts:
    """Draws random counts [nights, families, 3]: questions, gained and lost per night and taskset."""
    import numpy as np

    share, rest = divmod(assumed.items, assumed.families)
    items = np.array([share + (family < rest) for family in range(assumed.families)])
    apart = rng.binomial(items, assumed.discordant / 100, size=(nights, assumed.families))
    gained = rng.binomial(apart, 0.5 + gain / (2 * assumed.discordant / 100))
    return np.stack([np.broadcast_to(items, apart.shape), gained, apart - gained], axis=2)


def _null_quarter(judge: SimulatedJudge, drawn: Counts, *, most_nights: int) -> bool:
    """True if a simulated quarter promoted any candidate; held ones are asked again on at most `most_nights` nights."""
    so_far, asked, before, settled = None, 0, 0, Settled()
    for night in _each_night(drawn):
        so_far, asked = _added(so_far, night), asked + 1
        settled = judge.settled(so_far, settled)
        outcome = judge.outcome(so_far, before, settled)
        if outcome is DecisionOutcome.PROMOTE:
            return True
        again = outcome is DecisionOutcome.HOLD and asked < most_nights and judge.goes_on(so_far[0], asked)
        if not again:
            so_far, asked, before, settled = None, 0, before + 1, Settled()
    return False


def _search(judge: SimulatedJudge, drawn: Counts) -> tuple[int, DecisionOutcome]:
    """Returns the night and the outcome of a simulated candidate's decision; hold if it was undecided or abandoned."""
    so_far, settled = None, Settled()
    for night, counts in enumerate(_each_night(drawn)):
        so_far = _added(so_far, counts)
        settled = judge.settled(so_far, settled)
        outcome = judge.outcome(so_far, 0, settled)
        if outcome is not DecisionOutcome.HOLD:
            return night, outcome
        if not judge.goes_on(so_far[0], night + 1):
            break
    return len(drawn) - 1, DecisionOutcome.HOLD


def _each_night(drawn: Counts) -> list[NightCounts]:
    """Converts drawn counts into one `NightCounts` per night: over all tasksets, then for each."""
    nights = zip(drawn.sum(axis=1).tolist(), drawn.tolist(), strict=True)
    return [tuple(PairCounts(*counts) for counts in (whole, *families)) for whole, families in nights]


def _added(so_far: NightCounts | None, night: NightCounts) -> NightCounts:
    if so_far is None:
        return night
    return tuple(PairCounts(*map(sum, zip(a, b, strict=True))) for a, b in zip(so_far, night, strict=True))


THIRD = 3


def _losing_quarters(rng: np.random.Generator, policy: Policy, assumed: Assumed, *, retained: bool) -> list[int]:
    """Returns the number of promotions of each losing quarter, with or without the gate `retention`.

    Every candidate counts as shown to be better, so that the next one has a smaller level.
    """
    keep, retain = policy.rules_of(non_regression.GATE), policy.gates.get(retention.GATE)
    items, found = max(1, assumed.items // assumed.families), []
    for _ in range(assumed.quarters):
        promoted = 0
        for number in range(1, assumed.promotions + 1):
            loss = assumed.loss / 100
            passed = _is_passed(_lost(rng, assumed, items, loss), keep, keep.alpha)
            if retained and retain is not None and passed:
                level = level_of(retain.alpha, number)
                passed = _is_passed(_lost(rng, assumed, items, loss * (promoted + 1)), retain, level)
            promoted += passed
        found.append(promoted)
    return found


def _lost(rng: np.random.Generator, assumed: Assumed, items: int, loss: float) -> list[PairCounts]:
    """Draws one taskset's counts after each night, for a candidate that lost this fraction of it."""
    discordant = max(assumed.discordant / 100, loss)
    apart = rng.binomial(items, discordant, size=assumed.within)
    gained = rng.binomial(apart, 0.5 - loss / (2 * discordant))
    lost = (apart - gained).cumsum().tolist()
    return [
        PairCounts(items * (night + 1), won, gone)
        for night, (won, gone) in enumerate(zip(gained.cumsum().tolist(), lost, strict=True))
    ]


def _is_passed(nights: list[PairCounts], rules: NonRegressionRules, alpha: float) -> bool:
    return nights_outcome(nights, rules, alpha) is GateOutcome.PASSED
