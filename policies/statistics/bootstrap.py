"""Bootstrap interval for the gain on paired questions, resampled by cluster. Pure: equal counts give equal intervals.

Clusters are resampled with all their questions (Cameron, Gelbach & Miller 2008, Review of Economics and Statistics
90:414). With single questions as clusters the interval is about these tasksets, as generated; with tasksets as clusters
it asks if the gain would hold in other tasksets too. Percentile ends (Efron 1979, Annals of Statistics 7:1). The seed
is fixed.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

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
