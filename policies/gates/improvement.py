"""Gate `improvement`: the candidate is better by enough, over all nights of the pair.

Reports intervals as if tonight were the only look; the gate `evidence` limits a quarter's chance of a false promotion.
The outcome depends on counts alone, so that simulations run the same code.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Literal

from pydantic import Field

from policies.contract.decision import GateFinding, GateOutcome
from policies.contract.evidence import Evidence, PairCounts, PairedItem, all_nights, pairs
from policies.contract.rules import Section
from policies.gates.gate import FAILED, PASSED, UNDECIDED, Gate, GateContext, GateFigure, items_to_decide
from policies.statistics import LEAST_CLUSTERS, mcnemar_mid_p, of_clusters, of_questions, paired_difference

Interval = tuple[float, float] | None


class ImprovementRules(Section):
    min_items: int = Field(ge=1)
    min_gain: float = Field(ge=0, lt=100)
    """Required gain, in points of 100."""
    alpha: float = Field(gt=0, le=0.2)
    """Two-sided error level of the intervals and the test."""
    clusters: Literal["question", "family"]
    """Unit of the bootstrap's resampling: single questions, or whole tasksets with all their questions."""


def judge(evidence: Evidence, rules: ImprovementRules, context: GateContext) -> GateFinding:
    """Passes if the lower ends of score and bootstrap intervals reach the required gain and McNemar's test agrees.
    Fails if the score interval's upper end is below the required gain; undecided between, or with too few questions.
    The figure is the gain in points."""
    items = all_nights(evidence)
    counts = pairs(items)
    at_least = f"at least {rules.min_items} questions answered by both"
    if counts.items == 0:
        nothing = GateFigure("improvement", None, rules.min_gain)
        return nothing.undecided("no question was answered by both models", at_least)
    low, high = (100 * end for end in paired_difference(counts.gained, counts.lost, counts.items, alpha=rules.alpha))
    drawn = drawn_interval(items, counts, rules)
    seen = GateFigure("improvement", counts.gain, rules.min_gain, low=low, high=high)
    figures = (
        f"{counts.gain:+.1f} points on {counts.items} questions ({counts.gained} gained, {counts.lost} lost), "
        f"{100 * (1 - rules.alpha):g} % interval {low:+.1f} to {high:+.1f}, {_drawn_text(drawn, rules)}, "
        f"p = {mcnemar_mid_p(counts.gained, counts.lost):.2g}"
    )
    if evidence.candidate == evidence.champion:
        return seen.failed("the candidate is the champion itself", "a candidate with weights of its own")
    outcome = gain_outcome(counts, rules, lambda: drawn)
    if outcome is PASSED:
        return seen.passed(figures)
    if counts.items < rules.min_items:
        return seen.undecided(f"{figures}; {rules.min_items} questions are the least that may decide", at_least)
    if outcome is FAILED:
        wanted = f"{rules.min_gain:g}"
        return seen.failed(
            f"{figures}; the required gain is {wanted}", f"a candidate that gains more than {wanted} points"
        )
    if drawn is None:
        return seen.undecided(
            f"{figures}; a bootstrap over tasksets needs at least {LEAST_CLUSTERS} of them",
            'questions of more tasksets, or clusters = "question" in the policy',
        )
    return seen.undecided(
        f"{figures}; too few questions to show or exclude a gain of {rules.min_gain:g} points",
        items_to_decide(counts.items, counts.gain, counts.gain - min(low, 100 * drawn[0]), rules.min_gain),
    )


def gain_outcome(counts: PairCounts, rules: ImprovementRules, drawn: Callable[[], Interval]) -> GateOutcome:
    """Returns the improvement gate's outcome for these counts. `drawn` computes the bootstrap interval (fractions of 1)
    and is called only if needed."""
    if counts.items < rules.min_items:
        return UNDECIDED
    low, high = paired_difference(counts.gained, counts.lost, counts.items, alpha=rules.alpha)
    if 100 * high < rules.min_gain:
        return FAILED
    if 100 * low < rules.min_gain or mcnemar_mid_p(counts.gained, counts.lost) > rules.alpha:
        return UNDECIDED
    interval = drawn()
    return PASSED if interval is not None and 100 * interval[0] >= rules.min_gain else UNDECIDED


def drawn_interval(items: Sequence[PairedItem], counts: PairCounts, rules: ImprovementRules) -> Interval:
    """Returns the gain's bootstrap interval over the policy's clusters, in fractions of 1; None if too few."""
    if rules.clusters == "question":
        return of_questions(counts.gained, counts.lost, counts.items, alpha=rules.alpha)
    gains: Counter[str] = Counter()
    sizes: Counter[str] = Counter()
    for item in items:
        gains[item.family] += item.gained - item.lost
        sizes[item.family] += 1
    return of_clusters([(gains[family], sizes[family]) for family in sizes], alpha=rules.alpha)


def _drawn_text(drawn: Interval, rules: ImprovementRules) -> str:
    what = "questions" if rules.clusters == "question" else "tasksets"
    if drawn is None:
        return f"no bootstrap over {what}"
    return f"bootstrap over {what} {100 * drawn[0]:+.1f} to {100 * drawn[1]:+.1f}"


GATE = Gate("improvement", ImprovementRules, judge, never_missing="without it a model that is no better could promote")
