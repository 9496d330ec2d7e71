"""Compares two models on the same sealed items, item by item. Pure: results in, figures out.

An item counts only if both models have a verdict: an infrastructure error on either side excludes it for both. Shares
are of 1, intervals two-sided at level 1 - alpha; formulas and sources are in `policies.statistics`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from appliance.records.evaluations import ItemResult, ModelResults
from policies.statistics import paired_difference, wilson


@dataclass(frozen=True)
class Share:
    """Proportion with its confidence interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class PairedComparison:
    """Candidate and champion compared on the same items."""

    both: int
    gained: int
    """Items wrong for the champion, right for the candidate."""
    lost: int
    neither: int
    excluded: int
    """Items lacking a verdict on at least one side."""
    candidate: Share
    """Success on the counted items (Wilson)."""
    champion: Share
    gain: Share
    """Candidate minus champion, with the interval for paired proportions (Tango)."""
    candidate_errors: float
    """Failed calls / calls in the candidate's right answers among counted items; 0 without calls."""
    champion_errors: float

    @property
    def items(self) -> int:
        """Number of items with a verdict for both models."""
        return self.both + self.gained + self.lost + self.neither


def compare(candidate: ModelResults, champion: ModelResults, *, alpha: float = 0.05) -> PairedComparison:
    """Compares candidate and champion by their verdicts on the same items. Raises ValueError unless both answered the
    same items once, and some item counts."""
    ours, theirs = _by_task(candidate), _by_task(champion)
    if ours.keys() != theirs.keys():
        raise ValueError(f"{len(ours.keys() ^ theirs.keys())} items were answered by one model only")
    pairs = [(ours[task], theirs[task]) for task in sorted(ours)]
    counted = [(a, b) for a, b in pairs if a.passed is not None and b.passed is not None]
    if not counted:
        raise ValueError(f"none of {len(pairs)} items has a verdict for both models")
    both = sum(bool(a.passed and b.passed) for a, b in counted)
    gained = sum(bool(a.passed and not b.passed) for a, b in counted)
    lost = sum(bool(b.passed and not a.passed) for a, b in counted)
    items = len(counted)
    return PairedComparison(
        both=both,
        gained=gained,
        lost=lost,
        neither=items - both - gained - lost,
        excluded=len(pairs) - items,
        candidate=_share(both + gained, items, alpha),
        champion=_share(both + lost, items, alpha),
        gain=Share((gained - lost) / items, *paired_difference(gained, lost, items, alpha=alpha)),
        candidate_errors=errors_in_correct(a for a, _ in counted),
        champion_errors=errors_in_correct(b for _, b in counted),
    )


def by_family(candidate: ModelResults, champion: ModelResults, *, alpha: float = 0.05) -> dict[str, PairedComparison]:
    """Compares candidate and champion separately for each taskset with a counted item, in alphabetical order."""
    counted = _verdicts(candidate) & _verdicts(champion)
    families = sorted({item.family for item in candidate.items if item.task in counted})
    return {family: compare(_only(candidate, family), _only(champion, family), alpha=alpha) for family in families}


def errors_in_correct(items: Iterable[ItemResult]) -> float:
    """Returns the share of failed tool calls among all tool calls in passed items; 0 without calls."""
    right = [item for item in items if item.passed]
    calls = sum(item.calls for item in right)
    return sum(item.failed_calls for item in right) / calls if calls else 0.0


def _by_task(results: ModelResults) -> dict[str, ItemResult]:
    found = {item.task: item for item in results.items}
    if len(found) != len(results.items):
        raise ValueError(f"{len(results.items) - len(found)} items were answered more than once")
    return found


def _verdicts(results: ModelResults) -> set[str]:
    return {item.task for item in results.items if item.passed is not None}


def _only(results: ModelResults, family: str) -> ModelResults:
    return results.model_copy(update={"items": tuple(item for item in results.items if item.family == family)})


def _share(successes: int, items: int, alpha: float) -> Share:
    return Share(successes / items, *wilson(successes, items, alpha=alpha))
