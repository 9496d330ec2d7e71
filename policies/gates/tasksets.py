"""Judges each taskset on its own: not worse than a reference by more than a margin, at an error level for all nights.

Invariants: a taskset that passed on one night stays passed for this candidate, as Ville's inequality allows. A decision
never waits for questions that cannot exist: tasksets of given questions are pooled where they are too small, and once
every question was asked, or on the policy's last night, the observed loss decides. Too small a pool is left out by name
unless it is shown to be worse.
Every taskset must pass, so no correction for multiple tasksets is needed (intersection-union test, Berger 1982).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pydantic import Field

from policies.contract.decision import GateFinding, GateOutcome
from policies.contract.evidence import PairCounts
from policies.contract.rules import Section
from policies.gates.gate import FAILED, PASSED, UNDECIDED, GateFigure
from policies.statistics.sequential import bounds, log_not_worse, log_worse, questions_needed

POOL = "small_tasksets"
"""Name of the finding about all tasksets that have too few questions to be judged alone."""

NOTHING = PairCounts(0, 0, 0)

Nights = Sequence[PairCounts]
"""Counts of a taskset after each night, oldest first."""


class NonRegressionRules(Section):
    margin: float = Field(gt=0, lt=100)
    """Largest tolerated loss, in points of 100."""
    alpha: float = Field(gt=0, le=0.2)
    """Largest chance that a taskset passes which lost the margin or more, over all nights together."""
    min_items: int = Field(ge=1)
    """Fewest questions that decide about a taskset on its own."""


def counts_outcome(counts: PairCounts, rules: NonRegressionRules, alpha: float) -> GateOutcome:
    """Returns the outcome for one taskset's counts after one night."""
    if counts.items < rules.min_items:
        return UNDECIDED
    seen, margin, enough = (counts.gained, counts.lost, counts.items), rules.margin / 100, -math.log(alpha)
    if log_not_worse(*seen, margin) >= enough:
        return PASSED
    return FAILED if log_worse(*seen, margin) >= enough else UNDECIDED


def nights_outcome(nights: Nights, rules: NonRegressionRules, alpha: float) -> GateOutcome:
    """Returns the outcome of the first night that decides; undecided without one."""
    outcomes = (counts_outcome(counts, rules, alpha) for counts in nights)
    return next((outcome for outcome in outcomes if outcome is not UNDECIDED), UNDECIDED)


@dataclass(frozen=True)
class TasksetJudge:
    """Judges tasksets for one gate."""

    gate: str
    rules: NonRegressionRules
    alpha: float
    """Error level of this candidate, at most the policy's."""
    rows: Mapping[str, int]
    """Number of sealed questions in existence, for tasksets of given questions."""
    most_nights: int
    """Nights on which the policy asks a candidate."""
    reference: Mapping[str, str]
    """Model that each taskset is compared with, in words; the champion where it is not named."""

    def findings(self, tasksets: Mapping[str, Nights]) -> tuple[GateFinding, ...]:
        """Returns a finding for each taskset, and one for all that are too small together."""
        alone: list[GateFinding] = []
        small: dict[str, Nights] = {}
        for family, nights in tasksets.items():
            rows = self.rows.get(family)
            if rows is None or min(rows, self._in_reach(nights)) >= self.rules.min_items:
                alone.append(self._finding(family, nights, rows))
                continue
            own = replace(self, rules=self.rules.model_copy(update={"min_items": 1}))
            if nights_outcome(nights, own.rules, self.alpha) is FAILED:
                alone.append(own._finding(family, nights, rows))
            else:
                small[family] = nights
        return (*alone, *([self._pooled(small)] if small else []))

    def _in_reach(self, nights: Nights) -> int:
        """Estimates the number of questions answered by the last night."""
        return nights[-1].items * self.most_nights // len(nights)

    def _pooled(self, small: Mapping[str, Nights]) -> GateFinding:
        """Returns the finding about all tasksets that are too small, as if they were one."""
        length = max(map(len, small.values()))
        padded = [[NOTHING] * (length - len(nights)) + [*nights] for nights in small.values()]
        total = [PairCounts(*map(sum, zip(*night, strict=True))) for night in zip(*padded, strict=True)]
        rows = sum(self.rows[family] for family in small)
        if min(rows, self._in_reach(total)) >= self.rules.min_items:
            return self._finding(POOL, total, rows, f"{', '.join(small)} together")
        counts = total[-1]
        names = ", ".join(f"{family} ({self.rows[family]})" for family in small)
        return self._figure(POOL, counts, total).passed(
            f"left out: {names}: {self.rules.min_items} questions are the least that decide, and the policy's nights "
            f"can ask {min(rows, self._in_reach(total))} of these; {counts.gain:+.1f} points on {counts.items} so far"
        )

    def _finding(self, family: str, nights: Nights, rows: int | None, named: str = "") -> GateFinding:
        counts, named = nights[-1], named or family
        figure = self._figure(family, counts, nights)
        if counts.items < self.rules.min_items:
            least = self.rules.min_items
            return figure.undecided(
                f"{named}: both answered {counts.items} questions; {least} are the least that may decide",
                f"at least {least} questions of {named}",
            )
        text = f"{named}: {counts.gain:+.1f} points on {counts.items} questions{self._against(family)}"
        level = f"at {100 * (1 - self.alpha):.4g} % over all nights"
        worst = f"{-self.rules.margin:+g} is the worst allowed"
        outcome = nights_outcome(nights, self.rules, self.alpha)
        low, high = figure.low or 0.0, figure.high or 0.0
        if outcome is PASSED:
            return figure.passed(f"{text}, at least {low:+.1f} {level}")
        advice = f"a candidate that keeps what {self.reference.get(family, 'the champion')} can do in {named}"
        if outcome is FAILED:
            return figure.failed(f"{text}, at most {high:+.1f} {level}; {worst}", advice)
        if rows is not None and (counts.items >= rows or len(nights) >= self.most_nights):
            why = "which are all there are" if counts.items >= rows else f"after {len(nights)} nights, the most allowed"
            last = f"{text}, {why}, so the observed loss decides and alpha does not apply; {worst}"
            return figure.passed(last) if counts.gain >= -self.rules.margin else figure.failed(last, advice)
        return figure.undecided(f"{text}, at least {low:+.1f} {level}; {worst}", self._more(counts, named))

    def _against(self, family: str) -> str:
        return f" against {self.reference[family]}" if family in self.reference else ""

    def _figure(self, family: str, counts: PairCounts, nights: Nights) -> GateFigure:
        """Returns the gain with the narrowest bounds of any night, which hold together."""
        margin = self.rules.margin / 100
        ends = [
            bounds(night.gained, night.lost, night.items, margin=margin, alpha=self.alpha)
            for night in nights
            if night.items >= self.rules.min_items
        ]
        return GateFigure(
            f"{self.gate}/{family}",
            counts.gain if counts.items else None,
            -self.rules.margin,
            low=100 * max(low for low, _ in ends) if ends else None,
            high=100 * min(high for _, high in ends) if ends else None,
        )

    def _more(self, counts: PairCounts, named: str) -> str:
        """Estimates, as a sentence, the number of questions that would decide at this gain."""
        gained, lost = counts.gained / counts.items, counts.lost / counts.items
        needed = questions_needed(self.rules.margin / 100, self.alpha, gained=gained, lost=lost)
        if needed is None:
            return f"a smaller loss: at this one no number of questions of {named} shows enough"
        return f"about {max(needed, counts.items + 1)} questions of {named} would decide at this gain"
