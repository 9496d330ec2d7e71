"""Evidence about a loss that stays valid however often one looks, and error levels that promotions share. Pure.

Each question gives d = 1 (gained), -1 (lost) or 0. Against "the mean of d is at most m", a bet of stake s multiplies
its capital by 1 + s (d - m), where s < 1 / (1 + m) keeps every factor positive. The capital is the average over the
stakes that are best at three shares of discordant questions (Waudby-Smith & Ramdas 2024, JRSS B 86:1; Kelly 1956). For
such a mean the expected factor of a night is at most exp(s * sum of (the questions' means - m)) <= 1, however
different the questions are. So by Ville's inequality (1939) the capital ever reaches 1 / alpha with probability at
most alpha: nights add up, and may be stopped at will. The stakes are fixed before any question, and depend on the
margin alone.

The ledger of alpha: the k-th candidate that shares it has the level alpha / (k (k + 1)), and all together have alpha.
"""

from __future__ import annotations

import math
from functools import lru_cache

SHARES = ((0.1, 0.25), (0.2, 0.5), (0.4, 0.25))
"""Shares of discordant questions for which a stake is the best, each with its part of the capital."""
MOST = 0.9
"""Largest stake, as a fraction of the one that a single question could lose."""
FARTHEST = 100_000
"""Most questions searched for a sufficient number."""
_BISECTIONS = 50


def level_of(alpha: float, number: int) -> float:
    """Returns the error level of the `number`-th candidate, from 1, of those that share `alpha`."""
    if number < 1:
        raise ValueError(f"candidates are numbered from 1, not {number}")
    return alpha / (number * (number + 1))


@lru_cache(maxsize=500_000)
def log_not_worse(gained: int, lost: int, items: int, margin: float) -> float:
    """Returns the log of the odds against "worse by `margin` or more"; `margin` is a fraction of 1."""
    return _log_capital(gained, lost, items, _stakes(margin, 1 - margin), -margin)


@lru_cache(maxsize=500_000)
def log_worse(gained: int, lost: int, items: int, margin: float) -> float:
    """Returns the log of the odds against "not worse by more than `margin`"; `margin` is a fraction of 1."""
    return _log_capital(lost, gained, items, _stakes(margin, 1 + margin), margin)


def bounds(gained: int, lost: int, items: int, *, margin: float, alpha: float) -> tuple[float, float]:
    """Returns the lower and upper bound of the mean, each with error `alpha` over all looks together.

    The lower bound is above -`margin` if and only if `log_not_worse` exceeds log(1 / `alpha`); likewise the upper one.
    """
    enough = -math.log(alpha)
    low = _excluded_up_to(gained, lost, items, _stakes(margin, 1 - margin), enough)
    high = -_excluded_up_to(lost, gained, items, _stakes(margin, 1 + margin), enough)
    return low, high


def questions_needed(margin: float, alpha: float, *, gained: float, lost: float) -> int | None:
    """Returns the number of questions that would show "not worse by `margin`" if these shares of them are gained and
    lost; None beyond `FARTHEST`."""
    stakes, enough = _stakes(margin, 1 - margin), -math.log(alpha)

    def shows(items: int) -> bool:
        return _log_capital(gained * items, lost * items, items, stakes, -margin) >= enough

    few, many = 0, 1
    while not shows(many):
        few, many = many, 2 * many
        if many > FARTHEST:
            return None
    while many - few > 1:
        middle = (few + many) // 2
        few, many = (few, middle) if shows(middle) else (middle, many)
    return many


def _stakes(margin: float, worst: float) -> tuple[tuple[float, float], ...]:
    """Returns (stake, part of the capital); a single question can lose the fraction stake * `worst` of its part."""
    if not 0 < margin < 1:
        raise ValueError(f"a margin lies between 0 and 1, not {margin}")
    return tuple((min(margin / (share + margin**2), MOST / worst), part) for share, part in SHARES)


def _log_capital(
    gained: float, lost: float, items: float, stakes: tuple[tuple[float, float], ...], mean: float
) -> float:
    """Returns the log of the capital against "the mean is at most `mean`"."""
    if min(gained, lost) < 0 or gained + lost > items * (1 + 1e-9):
        raise ValueError(f"{gained} gained and {lost} lost do not fit into {items} items")
    logs = []
    for stake, part in stakes:
        if stake * (1 + mean) < 1:
            bets = gained * math.log1p(stake * (1 - mean)) + lost * math.log1p(-stake * (1 + mean))
            logs.append(math.log(part) + bets + max(0.0, items - gained - lost) * math.log1p(-stake * mean))
    most = max(logs, default=-math.inf)
    return most + math.log(sum(math.exp(one - most) for one in logs)) if logs else most


def _excluded_up_to(
    gained: int, lost: int, items: int, stakes: tuple[tuple[float, float], ...], enough: float
) -> float:
    """Returns the largest mean that the capital excludes with `enough` log odds; -1 if none. The capital falls as the
    mean rises."""
    low, high = -1.0, 1.0
    if _log_capital(gained, lost, items, stakes, low) < enough:
        return low
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        if _log_capital(gained, lost, items, stakes, middle) >= enough:
            low = middle
        else:
            high = middle
    return low
