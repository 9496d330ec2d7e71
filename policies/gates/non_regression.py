"""Gate `non_regression`: on each taskset the candidate is not worse by more than a margin."""

from __future__ import annotations

from pydantic import Field

from policies.contract.decision import GateFinding, GateOutcome
from policies.contract.evidence import Evidence, PairCounts, all_nights, pairs
from policies.contract.rules import Section
from policies.gates.gate import FAILED, PASSED, UNDECIDED, Gate, GateContext, GateFigure, items_to_decide
from policies.statistics import non_inferiority_bounds


class NonRegressionRules(Section):
    margin: float = Field(gt=0, lt=100)
    """Largest tolerated loss, in points of 100."""
    alpha: float = Field(gt=0, le=0.2)
    """One-sided error level of each bound."""
    min_items: int = Field(ge=1)


def judge(evidence: Evidence, rules: NonRegressionRules, context: GateContext) -> tuple[GateFinding, ...]:
    """Returns one finding for each taskset of any night of the two models; a taskset fails if it got worse. Fails if
    even the gain's upper bound is below minus the margin; undecided with too few questions, or between. The figure is
    the taskset's gain in points over all nights, so gains in others cannot make up for it.

    Every taskset must pass, so no correction for multiple tasksets is needed (intersection-union test, Berger 1982).
    """
    items = all_nights(evidence)
    families = sorted({item.family for item in (*items, *evidence.items)})
    return tuple(_family(pairs(items, family), rules, family) for family in families)


def family_outcome(counts: PairCounts, rules: NonRegressionRules) -> GateOutcome:
    """Returns the non-regression gate's outcome for one taskset's counts."""
    if counts.items < rules.min_items:
        return UNDECIDED
    low, high = non_inferiority_bounds(counts.gained, counts.lost, counts.items, alpha=rules.alpha)
    if 100 * low >= -rules.margin:
        return PASSED
    return FAILED if 100 * high < -rules.margin else UNDECIDED


def _family(counts: PairCounts, rules: NonRegressionRules, family: str) -> GateFinding:
    name = f"non_regression/{family}"
    if counts.items < rules.min_items:
        return GateFigure(name, counts.gain if counts.items else None, -rules.margin).undecided(
            f"{family}: both answered {counts.items} questions; {rules.min_items} are the least that may decide",
            f"at least {rules.min_items} questions of {family}",
        )
    bounds = non_inferiority_bounds(counts.gained, counts.lost, counts.items, alpha=rules.alpha)
    low, high = (100 * end for end in bounds)
    seen = GateFigure(name, counts.gain, -rules.margin, low=low, high=high)
    figures = f"{family}: {counts.gain:+.1f} points on {counts.items} questions"
    level = f"{100 * (1 - rules.alpha):g} % one-sided"
    outcome = family_outcome(counts, rules)
    if outcome is PASSED:
        return seen.passed(f"{figures}, at least {low:+.1f} ({level})")
    worst = f"{-rules.margin:+g} is the worst allowed"
    if outcome is FAILED:
        advice = f"a candidate that keeps what the champion can do in {family}"
        return seen.failed(f"{figures}, at most {high:+.1f} ({level}); {worst}", advice)
    return seen.undecided(
        f"{figures}, at least {low:+.1f} ({level}); {worst}",
        items_to_decide(counts.items, counts.gain, counts.gain - low, -rules.margin, f" of {family}"),
    )


GATE = Gate(
    "non_regression",
    NonRegressionRules,
    judge,
    never_missing="without it a gain in one family could pay for a loss in another",
)
