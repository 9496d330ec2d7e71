"""Simulates nights under a policy to estimate false promotions and missed gains.

A null candidate is neither better nor worse: each discordant question falls to either side equally. A candidate with a
gain wins the share of them that makes up the gain. Questions are independent and spread evenly over the tasksets. Every
gate that does not depend on counts is assumed to pass, and a person to approve everything; real deployments promote
fewer null candidates.

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
from policies.gates import evidence, improvement, non_regression
from policies.gates.evidence import may_go_on, odds_outcome
from policies.gates.improvement import gain_outcome
from policies.gates.non_regression import family_outcome
from policies.policy import Policy
from policies.statistics import of_questions, wilson

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
    """Share of quarters that promoted a candidate that is no better; the larger of the `fresh` and `held` shares."""
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


NightCounts = tuple[PairCounts, ...]
"""Counts of one candidate over its nights so far: all questions, then each taskset."""


class SimulatedJudge:
    """Decides about simulated candidates by counts alone under one policy: other gates pass and everyone approves."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._rules = rules = policy.rules_of(evidence.GATE)
        gain, keep = policy.rules_of(improvement.GATE), policy.rules_of(non_regression.GATE)
        self._given = tuple(
            GateFinding(gate=gate, outcome=GateOutcome.PASSED, figure=None, reason="")
            for gate in sorted(must_be_found(policy) - {"improvement", "evidence", "non_regression"})
        )

        def drawn(counts: PairCounts) -> tuple[float, float]:
            # Simulated families are identical: resampling whole ones would give the same width.
            return of_questions(counts.gained, counts.lost, counts.items, alpha=gain.alpha)

        remembered = lru_cache(maxsize=500_000)
        self._gain = remembered(lambda counts: gain_outcome(counts, gain, lambda: drawn(counts)))
        self._odds = remembered(lambda counts, before: odds_outcome(counts, before, rules))
        self._family = remembered(lambda counts: family_outcome(counts, keep))
        self.goes_on = remembered(lambda counts, nights: may_go_on(counts, nights, rules))
        self._outcome = lru_cache(maxsize=4_096)(self._outcome_of)

    def outcome(self, counts: NightCounts, before: int) -> DecisionOutcome:
        """Returns the promotion decision for these counts with `before` earlier candidates in the quarter."""
        families = frozenset(map(self._family, counts[1:]))
        odds = self._odds(counts[0], self._rules.candidates if before >= self._rules.candidates else 0)
        return self._outcome(self._gain(counts[0]), odds, families)

    def _outcome_of(self, gain: GateOutcome, odds: GateOutcome, families: frozenset[GateOutcome]) -> DecisionOutcome:
        counted = [("improvement", gain), ("evidence", odds)]
        counted += [(f"non_regression/{outcome.value}", outcome) for outcome in sorted(families)]
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
    so_far, asked, before = None, 0, 0
    for night in _each_night(drawn):
        so_far, asked = _added(so_far, night), asked + 1
        outcome = judge.outcome(so_far, before)
        if outcome is DecisionOutcome.PROMOTE:
            return True
        again = outcome is DecisionOutcome.HOLD and asked < most_nights and judge.goes_on(so_far[0], asked)
        if not again:
            so_far, asked, before = None, 0, before + 1
    return False


def _search(judge: SimulatedJudge, drawn: Counts) -> tuple[int, DecisionOutcome]:
    """Returns the night and the outcome of a simulated candidate's decision; hold if it was undecided or abandoned."""
    so_far = None
    for night, counts in enumerate(_each_night(drawn)):
        so_far = _added(so_far, counts)
        outcome = judge.outcome(so_far, 0)
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
