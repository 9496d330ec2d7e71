"""Tests and intervals for paired yes/no outcomes, and for one proportion. Pure, exact where affordable.

Only discordant items distinguish two models on the same items: `gained` (wrong before, right now) and `lost` (right
before, wrong now). Differences are (gained - lost) / items, as fractions of 1.

Sources. Test: McNemar 1947; mid-p after Fagerland, Lydersen & Laake 2013 (BMC Medical Research Methodology 13:91),
which keeps its level where the exact test is needlessly conservative. Interval: the score interval of Tango 1998
(Statistics in Medicine 17:891-908), as Wald's is far too short for few items and has no width without discordant ones.
One proportion: Wilson 1927.
"""

from __future__ import annotations

import math
from statistics import NormalDist

_NORMAL = NormalDist()
_BISECTIONS = 60
"""Halvings of [-1, 1], enough for double precision."""


def mcnemar_exact(gained: int, lost: int) -> float:
    """Returns the two-sided exact p-value of "neither model is better", from the binomial distribution of discordant
    items."""
    _require_counts(gained, lost)
    discordant = gained + lost
    term = tail = 1
    for k in range(min(gained, lost)):
        term = term * (discordant - k) // (k + 1)
        tail += term
    return min(1.0, 2 * tail / (1 << discordant))


def mcnemar_mid_p(gained: int, lost: int) -> float:
    """Returns McNemar's mid-p value, which counts half the observed probability (Fagerland et al. 2013). The gates use
    it."""
    _require_counts(gained, lost)
    if gained + lost == 0:
        return 1.0
    observed = math.comb(gained + lost, gained) / (1 << gained + lost)
    return 1.0 - observed / 2 if gained == lost else mcnemar_exact(gained, lost) - observed


def paired_difference(gained: int, lost: int, items: int, *, alpha: float) -> tuple[float, float]:
    """Returns the two-sided score interval at level 1 - `alpha` for the difference of two paired proportions (Tango
    1998)."""
    _require_counts(gained, lost)
    if items < 1 or gained + lost > items:
        raise ValueError(f"{gained} gained and {lost} lost do not fit into {items} items")
    z = _NORMAL.inv_cdf(1 - _require_alpha(alpha) / 2)
    return _score_end(gained, lost, items, z), _score_end(gained, lost, items, -z)


def non_inferiority_bounds(gained: int, lost: int, items: int, *, alpha: float) -> tuple[float, float]:
    """Returns the lower and upper one-sided bounds, at level 1 - `alpha` each, for a paired difference.

    Not inferior by a margin if the lower bound is above minus the margin; inferior if the upper bound is below it.
    """
    return paired_difference(gained, lost, items, alpha=2 * alpha)


def wilson(successes: int, items: int, *, alpha: float) -> tuple[float, float]:
    """Returns the two-sided score interval at level 1 - `alpha` for one proportion (Wilson 1927)."""
    if not 0 <= successes <= items or items < 1:
        raise ValueError(f"{successes} of {items} is not a proportion")
    z = _NORMAL.inv_cdf(1 - _require_alpha(alpha) / 2)
    share = successes / items
    weight = 1 + z**2 / items
    middle = (share + z**2 / (2 * items)) / weight
    spread = z * math.sqrt(share * (1 - share) / items + z**2 / (4 * items**2)) / weight
    low = 0.0 if successes == 0 else max(0.0, middle - spread)
    high = 1.0 if successes == items else min(1.0, middle + spread)
    return low, high


def score(gained: int, lost: int, items: int, difference: float) -> float:
    """Returns Tango's statistic: standard errors by which the data lie above `difference`, if that is the true one.

    Standard normal in that case. Falls as `difference` rises; infinite where the data exclude it.
    """
    excess = gained - lost - items * difference
    # Maximum-likelihood probability of a loss under this difference: the larger root of 2n q² + b q + c = 0.
    b = -gained - lost + (2 * items - gained + lost) * difference
    c = -lost * difference * (1 - difference)
    root = (math.sqrt(max(0.0, b * b - 8 * items * c)) - b) / (4 * items)
    losing = max(root, 0.0, -difference)  # rounding may leave the region of positive probabilities
    variance = items * (2 * losing + difference * (1 - difference))
    if variance > 0:
        return excess / math.sqrt(variance)
    return 0.0 if excess == 0 else math.copysign(math.inf, excess)


def _score_end(gained: int, lost: int, items: int, z: float) -> float:
    """Returns the difference of two paired proportions at which Tango's score equals `z`."""
    low, high = -1.0, 1.0
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        if score(gained, lost, items, middle) > z:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _require_counts(gained: int, lost: int) -> None:
    if gained < 0 or lost < 0:
        raise ValueError(f"counts cannot be negative: {gained} gained, {lost} lost")


def _require_alpha(alpha: float) -> float:
    if not 0 < alpha < 1:
        raise ValueError(f"alpha must lie between 0 and 1, not {alpha}")
    return alpha
