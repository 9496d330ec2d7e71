"""The gate that asks whether the quarter's budget allows saying that the candidate is better.

It may be asked every night: the odds against "no better" are added up over all nights on which the two models met. The
outcome is a function of counts, so that a simulation asks the very same code.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from pydantic import Field

from policies.contract.decision import GateFinding, GateOutcome
from policies.contract.evidence import Evidence, PairCounts, all_nights, pairs
from policies.contract.rules import Section
from policies.gates import improvement
from policies.gates.gate import FAILED, PASSED, UNDECIDED, Gate, GateContext, GateFigure
from policies.gates.improvement import ImprovementRules, gain_outcome
from policies.statistics.sequential import log_odds, needed

FARTHEST = 60
"""Nights ahead that are looked for evidence to be enough."""


class EvidenceRules(Section):
    """What all nights of a quarter may do together."""

    alpha: float = Field(gt=0, le=0.2)
    """The largest chance that a quarter promotes anything that is no better."""
    candidates: int = Field(ge=1, le=1000)
    """By how many candidates it is shared; more than that many cannot be promoted in one quarter."""
    nights: int = Field(ge=1, le=90)
    """Nights on which one candidate is asked fresh questions, at most; 1 trains a new one every night."""


def judge(evidence: Evidence, rules: EvidenceRules, context: GateContext) -> GateFinding:
    """Passes when the odds reach what the budget asks for. Never fails: more nights may add more. The figure is the
    odds to 1, and so is the threshold."""
    counts = pairs(all_nights(evidence))
    nights = len(evidence.earlier) + 1
    log, enough = log_odds(counts.gained, counts.lost), needed(rules.alpha, rules.candidates)
    seen = GateFigure("evidence", odds(log), odds(enough), "to 1")
    figures = (
        f"{_odds_text(log)} to 1 against 'no better' after {nights} {_plural('night', nights)}; "
        f"{_odds_text(enough)} to 1 is asked for"
    )
    if evidence.budget is None:
        return seen.undecided(
            f"{figures}; how many candidates the quarter had is not on record",
            "an evaluation whose place in its quarter is known: evaluate the candidate again",
        )
    left = max(0, rules.candidates - evidence.budget.before)
    figures += f" ({rules.alpha:g} shared by {rules.candidates}; {left} of {evidence.budget.quarter} are left)"
    if odds_outcome(counts, evidence.budget.before, rules) is PASSED:
        return seen.passed(figures)
    if left == 0:
        advice = "a candidate of the next quarter; or fewer, longer nights"
        return seen.undecided(f"{figures}: the quarter's budget is spent", advice)
    to_go = nights_to_go(counts, nights, context.gates[improvement.GATE], rules)
    if to_go is None:
        return seen.undecided(figures, f"a larger gain: at this one not even {FARTHEST} nights more would be enough")
    return seen.undecided(figures, f"about {to_go} more {_plural('night', to_go)} of fresh questions at this gain")


def odds_outcome(counts: PairCounts, before: int, rules: EvidenceRules) -> GateOutcome:
    """What the counts say to a candidate with so many `before` it in its quarter."""
    if before >= rules.candidates:
        return UNDECIDED
    return PASSED if log_odds(counts.gained, counts.lost) >= needed(rules.alpha, rules.candidates) else UNDECIDED


def may_go_on(counts: PairCounts, nights: int, rules: EvidenceRules) -> bool:
    """Whether a held candidate is worth another night of fresh questions: it gained, and has nights left."""
    return nights < rules.nights and counts.gained > counts.lost


def asks_again(findings: Sequence[GateFinding], nights: int, rules: EvidenceRules) -> bool:
    """Whether a candidate with these findings after so many nights should be asked fresh questions: it gained, nothing
    failed, only more questions can show that it is better, and it has nights left."""
    by_gate = {finding.gate: finding for finding in findings}
    gain, so_far = by_gate.get("improvement"), by_gate.get("evidence")
    if gain is None or so_far is None or any(finding.outcome is FAILED for finding in findings):
        return False
    return UNDECIDED in (gain.outcome, so_far.outcome) and nights < rules.nights and (gain.figure or 0.0) > 0


def nights_to_go(counts: PairCounts, nights: int, improving: ImprovementRules, rules: EvidenceRules) -> int | None:
    """How many more nights like those so far would pass both gates; None when not even `FARTHEST` would."""
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
    """Turns a logarithm into odds that JSON can hold."""
    return math.exp(min(log, 700.0))


def _odds_text(log: float) -> str:
    if log > math.log(1e6):
        return f"10^{log / math.log(10):.0f}"
    return f"{odds(log):.0f}" if log > math.log(10) else f"{odds(log):.2g}"


def _plural(noun: str, count: int) -> str:
    return noun if count == 1 else f"{noun}s"


GATE = Gate("evidence", EvidenceRules, judge, never_missing="without it many nights together promote what is no better")
