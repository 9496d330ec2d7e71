"""A bootstrap interval for the gain on paired questions, drawn in clusters. Pure: equal counts give equal intervals.

Clusters are what is drawn anew, with all that is in them (Cameron, Gelbach & Miller 2008, Review of Economics and
Statistics 90:414). With single questions as clusters the interval is about these families, which is what a family's
generator allows; with families as clusters it asks whether the gain would hold in other families too. Percentile ends
(Efron 1979, Annals of Statistics 7:1). The draws come from one fixed seed.
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
"""With fewer clusters the interval is too short to be believed."""


@lru_cache(maxsize=200_000)
def of_questions(gained: int, lost: int, items: int, *, alpha: float) -> tuple[float, float]:
    """Two-sided interval at level 1 - `alpha` for (gained - lost) / items, as fractions of 1; every question is a
    cluster of its own. Raises ValueError when the counts do not fit."""
    if min(gained, lost) < 0 or items < 1 or gained + lost > items:
        raise ValueError(f"{gained} gained and {lost} lost do not fit into {items} items")
    import numpy as np

    # Drawing questions with replacement only ever counts how many are gained and lost.
    shares = [gained / items, lost / items, 1 - (gained + lost) / items]
    draws = np.random.default_rng(SEED).multinomial(items, shares, DRAWS)
    return _ends((draws[:, 0] - draws[:, 1]) / items, alpha)


def of_clusters(clusters: Sequence[tuple[int, int]], *, alpha: float) -> tuple[float, float] | None:
    """Gives the same for clusters of (gained - lost, questions); None when there are too few of them."""
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
