"""The gates on the gain: whether the candidate is better by enough, and whether the quarter's budget allows saying so.

Both look at all nights on which these two models met. `improvement` says what was seen, with intervals as if tonight
were the only look; `evidence` may be asked every night, and is what keeps a quarter's chance of a false promotion down.
The outcomes are functions of counts, so that a simulation asks the very same code.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence

from policies.bootstrap import LEAST_CLUSTERS, of_clusters, of_questions
from policies.decision import Finding, GateOutcome
from policies.evidence import Evidence, PairedItem, Pairs, all_nights, pairs
from policies.gates import FAILED, PASSED, UNDECIDED, more_items
from policies.rules import EvidenceRules, ImprovementRules
from policies.sequential import log_odds, needed
from policies.statistics import mcnemar_mid_p, paired_difference

FARTHEST = 60
"""Nights ahead that are looked for evidence to be enough."""

Interval = tuple[float, float] | None


def improvement(evidence: Evidence, rules: ImprovementRules) -> Finding:
    """Whether the candidate is better by the gain asked for: the lower ends of the score interval and of the
    bootstrap's must reach it, and McNemar's test must agree. Failed when the score interval's upper end is below it.

    The figure is the gain in points over all nights on which the two met.
    """
    items = all_nights(evidence)
    seen = pairs(items)
    if seen.items == 0:
        return Finding(
            gate="improvement",
            outcome=UNDECIDED,
            figure=None,
            threshold=rules.min_gain,
            reason="no question was answered by both models",
            would_change=f"at least {rules.min_items} questions answered by both",
        )
    low, high = (100 * end for end in paired_difference(seen.gained, seen.lost, seen.items, alpha=rules.alpha))
    drawn = drawn_interval(items, seen, rules)
    reported = {"gate": "improvement", "figure": seen.gain, "low": low, "high": high, "threshold": rules.min_gain}
    told = (
        f"{seen.gain:+.1f} points on {seen.items} questions ({seen.gained} gained, {seen.lost} lost), "
        f"{100 * (1 - rules.alpha):g} % interval {low:+.1f} to {high:+.1f}, {_drawn(drawn, rules)}, "
        f"p = {mcnemar_mid_p(seen.gained, seen.lost):.2g}"
    )
    if evidence.candidate == evidence.champion:
        return Finding(
            **reported,
            outcome=FAILED,
            reason="the candidate is the champion itself",
            would_change="a candidate with weights of its own",
        )
    outcome = gain_outcome(seen, rules, lambda: drawn)
    if outcome is PASSED:
        return Finding(**reported, outcome=outcome, reason=told)
    if seen.items < rules.min_items:
        return Finding(
            **reported,
            outcome=outcome,
            reason=f"{told}; {rules.min_items} questions are the least that may decide",
            would_change=f"at least {rules.min_items} questions answered by both",
        )
    if outcome is FAILED:
        return Finding(
            **reported,
            outcome=outcome,
            reason=f"{told}; the gain asked for is {rules.min_gain:g}",
            would_change=f"a candidate that gains more than {rules.min_gain:g} points",
        )
    if drawn is None:
        return Finding(
            **reported,
            outcome=outcome,
            reason=f"{told}; whole families cannot be drawn anew from fewer than {LEAST_CLUSTERS}",
            would_change='questions of more families, or clusters = "question" in the policy',
        )
    least = min(low, 100 * drawn[0])
    return Finding(
        **reported,
        outcome=outcome,
        reason=f"{told}; a gain of {rules.min_gain:g} is neither shown nor excluded",
        would_change=more_items(seen.items, seen.gain, seen.gain - least, rules.min_gain),
    )


def gain_outcome(seen: Pairs, rules: ImprovementRules, drawn: Callable[[], Interval]) -> GateOutcome:
    """What the counts say. `drawn` gives the bootstrap's interval (fractions of 1); it is asked when it matters."""
    if seen.items < rules.min_items:
        return UNDECIDED
    low, high = paired_difference(seen.gained, seen.lost, seen.items, alpha=rules.alpha)
    if 100 * high < rules.min_gain:
        return FAILED
    if 100 * low < rules.min_gain or mcnemar_mid_p(seen.gained, seen.lost) > rules.alpha:
        return UNDECIDED
    interval = drawn()
    return PASSED if interval is not None and 100 * interval[0] >= rules.min_gain else UNDECIDED


def drawn_interval(items: Sequence[PairedItem], seen: Pairs, rules: ImprovementRules) -> Interval:
    """The bootstrap's interval over the policy's clusters, as fractions of 1; None when there are too few clusters."""
    if rules.clusters == "question":
        return of_questions(seen.gained, seen.lost, seen.items, alpha=rules.alpha)
    gains: Counter[str] = Counter()
    sizes: Counter[str] = Counter()
    for item in items:
        gains[item.family] += item.gained - item.lost
        sizes[item.family] += 1
    return of_clusters([(gains[family], sizes[family]) for family in sizes], alpha=rules.alpha)


def evidence_so_far(evidence: Evidence, improving: ImprovementRules, rules: EvidenceRules) -> Finding:
    """Whether the odds against "no better", added up over the nights, reach what the quarter's budget asks for.

    Never failed: more nights may add more. The figure is the odds to 1, and so is the threshold.
    """
    seen = pairs(all_nights(evidence))
    nights = len(evidence.earlier) + 1
    log, enough = log_odds(seen.gained, seen.lost), needed(rules.alpha, rules.candidates)
    reported = {"gate": "evidence", "figure": odds(log), "threshold": odds(enough), "unit": "to 1"}
    told = (
        f"{_said(log)} to 1 against 'no better' after {nights} {_plural('night', nights)}; "
        f"{_said(enough)} to 1 is asked for"
    )
    if evidence.budget is None:
        return Finding(
            **reported,
            outcome=UNDECIDED,
            reason=f"{told}; how many candidates the quarter had is not on record",
            would_change="an evaluation whose place in its quarter is known: evaluate the candidate again",
        )
    left = max(0, rules.candidates - evidence.budget.before)
    told += f" ({rules.alpha:g} shared by {rules.candidates}; {left} of {evidence.budget.quarter} are left)"
    outcome = odds_outcome(seen, evidence.budget.before, rules)
    if outcome is PASSED:
        return Finding(**reported, outcome=outcome, reason=told)
    if left == 0:
        return Finding(
            **reported,
            outcome=outcome,
            reason=f"{told}: the quarter's budget is spent",
            would_change="a candidate of the next quarter; or fewer, longer nights",
        )
    to_go = nights_to_go(seen, nights, improving, rules)
    if to_go is None:
        return Finding(
            **reported,
            outcome=outcome,
            reason=told,
            would_change=f"a larger gain: at this one not even {FARTHEST} nights more would be enough",
        )
    return Finding(
        **reported,
        outcome=outcome,
        reason=told,
        would_change=f"about {to_go} more {_plural('night', to_go)} of fresh questions at this gain",
    )


def odds_outcome(seen: Pairs, before: int, rules: EvidenceRules) -> GateOutcome:
    """What the counts say to a candidate with so many `before` it in its quarter."""
    if before >= rules.candidates:
        return UNDECIDED
    return PASSED if log_odds(seen.gained, seen.lost) >= needed(rules.alpha, rules.candidates) else UNDECIDED


def may_go_on(seen: Pairs, nights: int, rules: EvidenceRules) -> bool:
    """Whether a held candidate is worth another night of fresh questions: it gained, and has nights left."""
    return nights < rules.nights and seen.gained > seen.lost


def asks_again(findings: Sequence[Finding], nights: int, rules: EvidenceRules) -> bool:
    """Whether a candidate with these findings after so many nights should be asked fresh questions: it gained, nothing
    failed, only more questions can show that it is better, and it has nights left."""
    by_gate = {finding.gate: finding for finding in findings}
    gain, so_far = by_gate.get("improvement"), by_gate.get("evidence")
    if gain is None or so_far is None or any(finding.outcome is FAILED for finding in findings):
        return False
    open_ = UNDECIDED in (gain.outcome, so_far.outcome)
    return open_ and nights < rules.nights and (gain.figure or 0.0) > 0


def nights_to_go(seen: Pairs, nights: int, improving: ImprovementRules, rules: EvidenceRules) -> int | None:
    """How many more nights like those so far would pass both gates; None when not even `FARTHEST` would."""
    for more in range(1, FARTHEST + 1):
        grown = Pairs(
            items=seen.items * (nights + more) // nights,
            gained=seen.gained * (nights + more) // nights,
            lost=seen.lost * (nights + more) // nights,
        )
        if odds_outcome(grown, 0, rules) is PASSED and gain_outcome(grown, improving, lambda: (1.0, 1.0)) is PASSED:
            return more
    return None


def odds(log: float) -> float:
    """From a logarithm; a figure that JSON can hold."""
    return math.exp(min(log, 700.0))


def _said(log: float) -> str:
    if log > math.log(1e6):
        return f"10^{log / math.log(10):.0f}"
    return f"{odds(log):.0f}" if log > math.log(10) else f"{odds(log):.2g}"


def _drawn(drawn: Interval, rules: ImprovementRules) -> str:
    what = "questions" if rules.clusters == "question" else "families"
    if drawn is None:
        return f"no bootstrap over {what}"
    return f"bootstrap over {what} {100 * drawn[0]:+.1f} to {100 * drawn[1]:+.1f}"


def _plural(word: str, count: int) -> str:
    return word if count == 1 else f"{word}s"
