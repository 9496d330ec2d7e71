"""Evidence that may be inspected every night: odds against "no better", and the quarter's budget. Pure.

The odds. Each gained question multiplies a bet by 2t and each lost one by 2(1 - t); the odds are the average of such
bets over t between 1/2 and 1 (a method of mixtures: Robbins 1970, Annals of Mathematical Statistics 41:1397; betting:
Waudby-Smith & Ramdas 2024, JRSS B 86:1). For a candidate whose average gain is 0 or less, on fresh questions answered
independently, the expected factor of a night is at most exp((2t - 1) * sum of the questions' gains) <= 1, however
different the questions are. So by Ville's inequality (1939) the odds of such a candidate ever reach 1 / a with
probability at most a, however often one looks: the questions of several nights add up, and nights may be stopped at
will.

The budget. A fixed number of candidates share a quarter's alpha evenly, in order of arrival (Bonferroni): the chance
that a quarter promotes any of them that is no better is at most the quarter's alpha.
"""

from __future__ import annotations

import math
from functools import lru_cache

from policies.contract.times import moment

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
    """Returns the quarter, such as `2026-Q4`, of an ISO 8601 time; UTC without a zone. Raises ValueError for an invalid
    time."""
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
