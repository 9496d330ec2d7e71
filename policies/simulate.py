"""How often a policy would be fooled, and how often it would miss: made-up nights through the gates' own outcomes.

A null candidate is no better and no worse: each question that tells the two models apart falls to either side alike. A
candidate with a gain wins them with the share that makes up the gain. Questions are independent and spread evenly over
the families. What the figures take for granted: every gate that is not about counts passes, and a person approves of
everything; so a real owner is fooled less often than said here.

The outcomes are those of `gates_gain` and `gates`, and the order of rules is that of `decide` (tested against it);
only the questions are drawn as counts. About 100,000 nights take a few seconds, as equal counts are judged once. numpy
is imported by the first draw (see `bootstrap`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, model_validator

from policies.bootstrap import of_questions
from policies.decide import asked_for, outcome_of
from policies.decision import DecisionOutcome, Finding, GateOutcome
from policies.evidence import Pairs
from policies.gates import family_outcome
from policies.gates_gain import gain_outcome, may_go_on, odds_outcome
from policies.rules import PromotionRules
from policies.statistics import wilson

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Counts = NDArray[np.int64]


class Assumed(BaseModel):
    """What a simulation is about. Points and percent of 100."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    items: int = Field(800, ge=1, le=100_000)
    """Sealed questions a night."""
    families: int = Field(7, ge=1, le=100)
    discordant: float = Field(20.0, gt=0, le=100)
    """Percent of the questions that one model answers and the other does not."""
    gain: float = Field(4.0, gt=0, le=100)
    """Points, of the candidate that should be found."""
    within: int = Field(5, ge=1, le=90)
    """Nights in which it should be found."""
    nights: int = Field(90, ge=1, le=400)
    """Of a quarter."""
    quarters: int = Field(2_000, ge=1, le=100_000)
    seed: int = Field(0, ge=0)

    @model_validator(mode="after")
    def _fits(self) -> Assumed:
        if self.gain > self.discordant:
            raise ValueError(f"a gain of {self.gain:g} points needs at least {self.gain:g} % discordant questions")
        if self.items < self.families:
            raise ValueError("there are more families than questions")
        return self


class Simulated(BaseModel):
    """Shares are of 1; their intervals are Wilson's at 95 %."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    assumed: Assumed
    null_promoted_share: float
    """Of the quarters: those in which a candidate that is no better was promoted; the larger of the next two."""
    null_promoted_low: float
    null_promoted_high: float
    null_promoted_share_fresh: float
    """With another null candidate every night."""
    null_promoted_share_held: float
    """With held candidates asked again, as the policy says."""
    power: float
    """Of the candidates with the gain: those that were promoted within the nights."""
    power_low: float
    power_high: float
    found_by_night: tuple[float, ...]
    """The same after each night."""
    rejected_share: float
    """Of the candidates with the gain: those that were rejected within the nights."""


Triple = tuple[int, int, int]
"""Questions, gained, lost."""


class Standing(NamedTuple):
    """One candidate's counts, over its nights so far."""

    whole: Triple
    families: tuple[Triple, ...]


class Judge:
    """The outcome on counts alone, under one policy: every other gate passed, every person approved."""

    def __init__(self, rules: PromotionRules) -> None:
        self._rules = rules
        self._given = tuple(
            Finding(gate=gate, outcome=GateOutcome.PASSED, figure=None, reason="")
            for gate in sorted(asked_for(rules) - {"improvement", "evidence", "non_regression"})
        )
        self._gain = lru_cache(maxsize=500_000)(self._gain_of)
        self._odds = lru_cache(maxsize=500_000)(self._odds_of)
        self._family = lru_cache(maxsize=500_000)(self._family_of)
        self.goes_on = lru_cache(maxsize=500_000)(self._goes_on_of)
        self._outcome = lru_cache(maxsize=4_096)(self._outcome_of)

    def outcome(self, standing: Standing, before: int) -> DecisionOutcome:
        """What is decided about a candidate with these counts and so many before it in its quarter."""
        families = frozenset(self._family(*counts) for counts in standing.families)
        odds = self._odds(*standing.whole, before >= self._rules.evidence.candidates)
        return self._outcome(self._gain(*standing.whole), odds, families)

    def _outcome_of(self, gain: GateOutcome, odds: GateOutcome, families: frozenset[GateOutcome]) -> DecisionOutcome:
        counted = [("improvement", gain), ("evidence", odds)]
        counted += [(f"non_regression/{outcome.value}", outcome) for outcome in sorted(families)]
        found = [Finding(gate=gate, outcome=outcome, figure=None, reason="") for gate, outcome in counted]
        return outcome_of([*self._given, *found], self._rules)

    def _gain_of(self, items: int, gained: int, lost: int) -> GateOutcome:
        rules = self._rules.improvement
        seen = Pairs(items=items, gained=gained, lost=lost)
        # Families here differ in nothing: drawing whole ones would be of no other width.
        return gain_outcome(seen, rules, lambda: of_questions(gained, lost, items, alpha=rules.alpha))

    def _odds_of(self, items: int, gained: int, lost: int, spent: bool) -> GateOutcome:
        rules = self._rules.evidence
        return odds_outcome(Pairs(items=items, gained=gained, lost=lost), rules.candidates if spent else 0, rules)

    def _goes_on_of(self, items: int, gained: int, lost: int, nights: int) -> bool:
        return may_go_on(Pairs(items=items, gained=gained, lost=lost), nights, self._rules.evidence)

    def _family_of(self, items: int, gained: int, lost: int) -> GateOutcome:
        return family_outcome(Pairs(items=items, gained=gained, lost=lost), self._rules.non_regression)


def simulate(rules: PromotionRules, assumed: Assumed, said: Callable[[str], None] = lambda text: None) -> Simulated:
    """Simulates both; `said` hears what is being done."""
    import numpy as np

    rng = np.random.default_rng(assumed.seed)
    judge = Judge(rules)
    said(f"{assumed.quarters} quarters of {assumed.nights} nights with candidates that are no better")
    fresh = held = 0
    for _ in range(assumed.quarters):
        drawn = _nights(rng, assumed, assumed.nights, 0.0)
        fresh += _null_quarter(judge, drawn, most_nights=1)
        held += _null_quarter(judge, drawn, most_nights=rules.evidence.nights)
    said(f"{assumed.quarters} candidates with a gain of {assumed.gain:g} points")
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
    """[nights, families, 3]: questions, gained and lost of each night's families."""
    import numpy as np

    share, rest = divmod(assumed.items, assumed.families)
    items = np.array([share + (family < rest) for family in range(assumed.families)])
    apart = rng.binomial(items, assumed.discordant / 100, size=(nights, assumed.families))
    gained = rng.binomial(apart, 0.5 + gain / (2 * assumed.discordant / 100))
    return np.stack([np.broadcast_to(items, apart.shape), gained, apart - gained], axis=2)


def _null_quarter(judge: Judge, drawn: Counts, *, most_nights: int) -> bool:
    """Whether any candidate of the quarter was promoted; held ones are asked again on at most so many nights."""
    standing, asked, before = None, 0, 0
    for night in _standings(drawn):
        standing, asked = _added(standing, night), asked + 1
        outcome = judge.outcome(standing, before)
        if outcome is DecisionOutcome.PROMOTE:
            return True
        again = outcome is DecisionOutcome.HOLD and asked < most_nights and judge.goes_on(*standing.whole, asked)
        if not again:
            standing, asked, before = None, 0, before + 1
    return False


def _search(judge: Judge, drawn: Counts) -> tuple[int, DecisionOutcome]:
    """On which night a candidate was decided on, and how; hold when it was not, or was given up."""
    standing = None
    for night, counts in enumerate(_standings(drawn)):
        standing = _added(standing, counts)
        outcome = judge.outcome(standing, 0)
        if outcome is not DecisionOutcome.HOLD:
            return night, outcome
        if not judge.goes_on(*standing.whole, night + 1):
            break
    return len(drawn) - 1, DecisionOutcome.HOLD


def _standings(drawn: Counts) -> list[Standing]:
    """Each night on its own."""
    wholes = drawn.sum(axis=1).tolist()
    nights = zip(wholes, drawn.tolist(), strict=True)
    return [Standing(tuple(whole), tuple(map(tuple, families))) for whole, families in nights]


def _added(so_far: Standing | None, night: Standing) -> Standing:
    if so_far is None:
        return night
    families = tuple(_sum(a, b) for a, b in zip(so_far.families, night.families, strict=True))
    return Standing(_sum(so_far.whole, night.whole), families)


def _sum(a: Triple, b: Triple) -> Triple:
    return a[0] + b[0], a[1] + b[1], a[2] + b[2]
