"""Gate `evidence`: the quarter's error budget allows calling the candidate better.

May be evaluated every night: the odds against "no better" accumulate over all nights of the pair. The outcome depends
on counts alone, so that simulations run the same code.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from pydantic import Field

from common.counting import counted
from policies.contract.decision import GateFinding, GateOutcome
from policies.contract.evidence import Evidence, PairCounts, all_nights, pairs
from policies.contract.rules import Section
from policies.gates import improvement
from policies.gates.gate import FAILED, PASSED, UNDECIDED, Gate, GateContext, GateFigure
from policies.gates.improvement import ImprovementRules, gain_outcome
from policies.statistics import log_odds, needed

FARTHEST = 60
"""Number of future nights searched for sufficient evidence."""
BY_QUESTIONS = frozenset({"improvement", "evidence", "non_regression", "retention"})
"""Gates that more questions can decide."""


class EvidenceRules(Section):
    """Rules of the error budget that all candidates and nights of a quarter share."""

    alpha: float = Field(gt=0, le=0.2)
    """Largest chance that a quarter promotes a candidate without a real gain."""
    candidates: int = Field(ge=1, le=1000)
    """Number of candidates that share alpha, and the most that a quarter can promote."""
    nights: int = Field(ge=1, le=90)
    """Most nights of fresh questions per candidate; 1 trains a new candidate every night."""


def judge(evidence: Evidence, rules: EvidenceRules, context: GateContext) -> GateFinding:
    """Passes when the odds that the candidate is better reach the budget's threshold; else undecided. Never fails,
    because more nights may add evidence. The figure and the threshold are odds to 1."""
    counts = pairs(all_nights(evidence))
    nights = len(evidence.earlier) + 1
    log, enough = log_odds(counts.gained, counts.lost), needed(rules.alpha, rules.candidates)
    seen = GateFigure("evidence", odds(log), odds(enough), "to 1")
    figures = (
        f"evidence that the candidate is better: {_odds_text(log)} to 1 after {counted(nights, 'night')}; "
        f"required: {_odds_text(enough)} to 1"
    )
    if evidence.budget is None:
        return seen.undecided(
            f"{figures}; the quarter's number of candidates is not on record",
            "an evaluation with a known place in its quarter: evaluate the candidate again",
        )
    left = max(0, rules.candidates - evidence.budget.before)
    figures += (
        f" (false promotions: at most {100 * rules.alpha:g} % of quarters, a chance that {rules.candidates} candidates "
        f"share; {left} of them are left in {evidence.budget.quarter})"
    )
    if odds_outcome(counts, evidence.budget.before, rules) is PASSED:
        return seen.passed(figures)
    if left == 0:
        advice = "a candidate of the next quarter; or fewer, longer nights"
        return seen.undecided(f"{figures}: the quarter's budget is spent", advice)
    to_go = nights_to_go(counts, nights, context.gates[improvement.GATE], rules)
    if to_go is None:
        return seen.undecided(figures, f"a larger gain: {FARTHEST} more nights like these would not suffice")
    return seen.undecided(figures, f"about {counted(to_go, 'more night')} of fresh questions at this gain")


def odds_outcome(counts: PairCounts, before: int, rules: EvidenceRules) -> GateOutcome:
    """Returns the evidence gate's outcome: passed if the odds of gained against lost answers reach the threshold for
    `rules.candidates` candidates a quarter. Otherwise undecided, and always undecided after that many earlier
    candidates (`before`)."""
    if before >= rules.candidates:
        return UNDECIDED
    return PASSED if log_odds(counts.gained, counts.lost) >= needed(rules.alpha, rules.candidates) else UNDECIDED


def may_go_on(counts: PairCounts, nights: int, rules: EvidenceRules) -> bool:
    """True if a held candidate deserves another night of fresh questions: it gained and has nights left."""
    return nights < rules.nights and counts.gained > counts.lost


def asks_again(findings: Sequence[GateFinding], nights: int, rules: EvidenceRules) -> bool:
    """True if a candidate should be asked fresh questions on another night.

    Requires a gain, no failed gate, an undecided gate that more questions can decide, and nights left.
    """
    by_gate = {finding.gate: finding for finding in findings}
    undecided = {finding.gate.partition("/")[0] for finding in findings if finding.outcome is UNDECIDED}
    gain, so_far = by_gate.get("improvement"), by_gate.get("evidence")
    if gain is None or so_far is None or any(finding.outcome is FAILED for finding in findings):
        return False
    return not undecided.isdisjoint(BY_QUESTIONS) and nights < rules.nights and (gain.figure or 0.0) > 0


def nights_to_go(counts: PairCounts, nights: int, improving: ImprovementRules, rules: EvidenceRules) -> int | None:
    """Returns the number of further similar nights after which both gates of the gain pass; None beyond `FARTHEST`."""
    for more in range(1, FARTHEST + 1):
        grown = PairCounts(
            items=counts.items * (nights + more) // nights,
            gained=counts.gained * (nights + more) // nights,
            lost=counts.lost * (nights + more) // nights,
        )
        if odds_outcome(grown, 0, rules) is PASSED and gain_outcome(grown, improving, lambda: (1.0, 1.0)) is PASSED:
            return more
    return None


def odds(log: float) -> float:
    """Converts log odds into odds, capped so that JSON can hold them."""
    return math.exp(min(log, 700.0))


def _odds_text(log: float) -> str:
    if log > math.log(1e6):
        return "over 1,000,000"
    return f"{odds(log):.0f}" if log > math.log(10) else f"{odds(log):.2g}"


GATE = Gate(
    "evidence",
    EvidenceRules,
    judge,
    never_missing="without it many nights together could promote a model without a real gain",
)
