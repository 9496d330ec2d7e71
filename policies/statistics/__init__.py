"""Statistics behind the gates: intervals, paired tests, bootstrap, and sequential odds over several nights. Pure.

Only discordant items distinguish two models on the same items: `gained` (wrong before, right now) and `lost` (right
before, wrong now). Differences are (gained - lost) / items, as fractions of 1.

Sources. Test: McNemar 1947; mid-p after Fagerland, Lydersen & Laake 2013 (BMC Medical Research Methodology 13:91),
which keeps its level where the exact test is needlessly conservative. Interval: the score interval of Tango 1998
(Statistics in Medicine 17:891-908), as Wald's is far too short for few items and has no width without discordant ones.
One proportion: Wilson 1927.

The bootstrap interval for the gain on paired questions is resampled by cluster; equal counts give equal intervals.
Clusters are resampled with all their questions (Cameron, Gelbach & Miller 2008, Review of Economics and Statistics
90:414). With single questions as clusters the interval is about these tasksets, as generated; with tasksets as clusters
it asks if the gain would hold in other tasksets too. Percentile ends (Efron 1979, Annals of Statistics 7:1). The seed
is fixed.

The odds against "no better" may be inspected every night. Each gained question multiplies a bet by 2t and each lost one
by 2(1 - t); the odds are the average of such bets over t between 1/2 and 1 (a method of mixtures: Robbins 1970, Annals
of Mathematical Statistics 41:1397; betting: Waudby-Smith & Ramdas 2024, JRSS B 86:1). For a candidate whose average
gain is 0 or less, on fresh questions answered independently, the expected factor of a night is at most exp((2t - 1) *
sum of the questions' gains) <= 1, however different the questions are. So by Ville's inequality (1939) the odds of such
a candidate ever reach 1 / a with probability at most a, however often one looks: the questions of several nights add
up, and nights may be stopped at will.

The budget. A fixed number of candidates share a quarter's alpha evenly, in order of arrival (Bonferroni): the chance
that a quarter promotes any of them that is no better is at most the quarter's alpha.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from statistics import NormalDist
from typing import TYPE_CHECKING

from policies.contract.decision import moment

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


_NORMAL = NormalDist()
_BISECTIONS = 60
"""Halvings of [-1, 1], enough for double precision."""


def mcnemar_exact(gained: int, lost: int) -> float:
    """Returns the two-sided exact p-value of "neither model is better", binomial over discordant items."""
    _require_counts(gained, lost)
    discordant = gained + lost
    term = tail = 1
    for k in range(min(gained, lost)):
        term = term * (discordant - k) // (k + 1)
        tail += term
    return min(1.0, 2 * tail / (1 << discordant))


def mcnemar_mid_p(gained: int, lost: int) -> float:
    """Returns McNemar's mid-p value, which counts half the observed probability (Fagerland 2013). The gates use it."""
    _require_counts(gained, lost)
    if gained + lost == 0:
        return 1.0
    observed = math.comb(gained + lost, gained) / (1 << gained + lost)
    return 1.0 - observed / 2 if gained == lost else mcnemar_exact(gained, lost) - observed


def paired_difference(gained: int, lost: int, items: int, *, alpha: float) -> tuple[float, float]:
    """Returns the score interval at level 1 - `alpha` for the difference of two paired proportions (Tango 1998)."""
    _require_counts(gained, lost)
    if items < 1 or gained + lost > items:
        raise ValueError(f"{gained} gained and {lost} lost do not fit into {items} items")
    z = _NORMAL.inv_cdf(1 - _require_alpha(alpha) / 2)
    return _score_end(gained, lost, items, z), _score_end(gained, lost, items, -z)


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


# numpy is loaded by the first draw and not before: its linear algebra starts threads, and the daemon gives up root's
# rights while it has only one.

DRAWS = 2_000
SEED = 20_260_101
LEAST_CLUSTERS = 8
"""Smallest number of clusters; with fewer the interval is too short to be trusted."""


@lru_cache(maxsize=200_000)
def of_questions(gained: int, lost: int, items: int, *, alpha: float) -> tuple[float, float]:
    """Returns the two-sided bootstrap interval of the gain (gained - lost) / items, with one cluster per question.
    Fractions of 1, at level 1 - `alpha`. Raises ValueError for inconsistent counts."""
    if min(gained, lost) < 0 or items < 1 or gained + lost > items:
        raise ValueError(f"{gained} gained and {lost} lost do not fit into {items} items")
    import numpy as np

    # Resampling questions with replacement depends only on the counts of gained and lost ones.
    shares = [gained / items, lost / items, 1 - (gained + lost) / items]
    draws = np.random.default_rng(SEED).multinomial(items, shares, DRAWS)
    return _ends((draws[:, 0] - draws[:, 1]) / items, alpha)


def of_clusters(clusters: Sequence[tuple[int, int]], *, alpha: float) -> tuple[float, float] | None:
    """Returns the gain's bootstrap interval for clusters of (gained - lost, questions); None with too few clusters."""
    if len(clusters) < LEAST_CLUSTERS:
        return None
    import numpy as np

    content = np.array(sorted(clusters))
    chosen = np.random.default_rng(SEED).integers(len(content), size=(DRAWS, len(content)))
    drawn = content[chosen].sum(axis=1)
    return _ends(drawn[:, 0] / drawn[:, 1], alpha)


def _ends(gains: NDArray[np.float64], alpha: float) -> tuple[float, float]:
    import numpy as np

    low, high = np.quantile(gains, [alpha / 2, 1 - alpha / 2])
    return float(low), float(high)


PRIOR = 8
"""Parameter of the Beta(8, 8) weights folded onto [1/2, 1]: most weight on shares of .5 to .7 won."""

_LN2 = math.log(2)


@lru_cache(maxsize=200_000)
def log_odds(gained: int, lost: int) -> float:
    """Returns the log odds against "no better" for the gained and lost questions of all nights.

    Raises ValueError for negative counts.
    """
    if gained < 0 or lost < 0:
        raise ValueError(f"counts cannot be negative: {gained} gained, {lost} lost")
    a, b = gained + PRIOR, lost + PRIOR
    return (gained + lost + 1) * _LN2 + _log_beta(a, b) - _log_beta(PRIOR, PRIOR) + _log_tail(a, b)


def needed(alpha: float, candidates: int) -> float:
    """Returns the log odds that a candidate must reach if `candidates` of them share the error chance `alpha`."""
    return math.log(candidates / alpha)


def quarter_of(text: str) -> str:
    """Returns the quarter, such as `2026-Q4`, of an ISO 8601 time; UTC without a zone. Raises ValueError."""
    found = moment(text)
    return f"{found.year}-Q{(found.month + 2) // 3}"


def _log_beta(a: int, b: int) -> float:
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)


def _log_tail(a: int, b: int) -> float:
    """Returns the log of the mass of Beta(a, b) above 1/2: the exact probability that a + b - 1 fair coins show fewer
    than a heads."""
    coins = a + b - 1
    if a > b:
        # The rest is small: fair coins that show at least a heads.
        return math.log1p(-math.exp(_log_coins(coins, coins - a)))
    return _log_coins(coins, a - 1)


def _log_coins(coins: int, most: int) -> float:
    """Returns the log probability that `coins` fair coins show at most `most` heads."""
    term = total = 1
    for k in range(most):
        term = term * (coins - k) // (k + 1)
        total += term
    return _log(total) - coins * _LN2


def _log(number: int) -> float:
    """Returns the natural logarithm of an integer of any length."""
    shift = max(0, number.bit_length() - 1000)
    return math.log(number >> shift) + shift * _LN2
