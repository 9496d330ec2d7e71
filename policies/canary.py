"""Assigns jobs between champion and canary in a promoted model's first days, and decides when to drop the canary. Pure.

A canary first replays the champion's last jobs, then answers a share of the real ones. Only verified or not verified is
compared. Jobs that a solver answered, that were withdrawn, or that an infrastructure error lost count for neither
model.

The odds against "no worse". A replayed job verified for only one of the two is lost or gained; for a model that is no
worse, the chance of a loss is at most one half. A real job goes to the canary by an unpredictable hash with probability
`share`; so a failed job was the canary's with probability at most `share`, and a verified one was the champion's with
probability at most 1 - `share`, however hard the jobs are and however that changes over the days. Each of the three is
a bet on a coin with a known largest chance; the product of such bets is a test martingale or falls below one (Shafer et
al. 2011, Statistical Science 26:84; uniform mixture: Robbins 1970). By Ville's inequality (1939) the odds of a model
that is as good as the champion ever reach 1 / alpha with probability at most alpha, even if inspected after every job.
"""

from __future__ import annotations

import hashlib
import math
from functools import lru_cache
from typing import Literal

from policies.contract.decision import PolicyRecord, hours_between
from policies.contract.rules import ServiceRules

Arm = Literal["champion", "canary"]
Step = Literal["replay", "share", "passed", "dropped"]


class Counts(PolicyRecord):
    """Counts of a canary's jobs so far, replayed and real, beside the champion's."""

    replayed: int = 0
    """Replayed earlier jobs that count."""
    to_replay: int = 0
    """Earlier jobs whose replay has not finished."""
    gained: int = 0
    """Replayed jobs verified for the canary but not for the champion."""
    lost: int = 0
    canary_passed: int = 0
    """Verified real jobs in the canary's share; the next three fields also count real jobs."""
    canary_failed: int = 0
    champion_passed: int = 0
    champion_failed: int = 0

    @property
    def canary_jobs(self) -> int:
        return self.canary_passed + self.canary_failed

    @property
    def champion_jobs(self) -> int:
        return self.champion_passed + self.champion_failed


def arm(job: str, share: float, seed: str) -> Arm:
    """Assigns a job to canary or champion, deterministically, and unpredictably without `seed`, the canary's id."""
    drawn = int.from_bytes(hashlib.sha256(f"{seed}\n{job}".encode()).digest()[:8], "big")
    return "canary" if drawn < share * 2**64 else "champion"


def is_wanted(rules: ServiceRules, champion_jobs: int) -> bool:
    """True if a promoted model starts as a canary: the policy wants one, and has enough champion jobs to compare on."""
    return rules.canary and champion_jobs >= rules.min_jobs


def log_odds_of_drop(counts: Counts, share: float) -> float:
    """Returns the natural logarithm of the odds that a canary is worse than the champion, against "no worse"."""
    return (
        _log_bet(counts.lost, counts.gained, 0.5)
        + _log_bet(counts.canary_failed, counts.champion_failed, share)
        + _log_bet(counts.champion_passed, counts.canary_passed, 1 - share)
    )


def odds_of_drop(counts: Counts, share: float) -> float:
    """Returns the odds to 1 that a canary is worse than the champion, capped so that JSON can hold them."""
    return math.exp(min(log_odds_of_drop(counts, share), 700.0))


def step_of(counts: Counts, rules: ServiceRules, *, share_since: str, now: str) -> Step:
    """Returns the current step of a canary: replaying jobs, sharing real jobs, dropped as worse, or passed.

    `share_since` is the time it got its first real jobs, empty before; times are UTC in ISO 8601. Raises ValueError for
    an invalid time.
    """
    if log_odds_of_drop(counts, rules.share) >= -math.log(rules.alpha):
        return "dropped"
    if counts.to_replay:
        return "replay"
    if not share_since:
        return "share"
    lasted = hours_between(share_since, now)
    enough = lasted >= rules.window_hours and counts.canary_jobs >= rules.min_jobs
    return "passed" if enough or lasted >= rules.max_hours else "share"


def describe(counts: Counts, rules: ServiceRules) -> str:
    """Summarizes a canary's job counts, and the odds that it is worse, in one sentence."""
    odds = f"{odds_of_drop(counts, rules.share):.3g}"
    return (
        f"{counts.replayed} jobs replayed, {counts.gained} gained and {counts.lost} lost; of real jobs it verified "
        f"{counts.canary_passed} of {counts.canary_jobs}, the champion {counts.champion_passed} of "
        f"{counts.champion_jobs}; odds of {odds} to 1 that it is worse, dropped at {1 / rules.alpha:g}"
    )


@lru_cache(maxsize=100_000)
def _log_bet(hits: int, misses: int, chance: float) -> float:
    """Returns the log of a uniform mixture of bets on a coin whose chance of a hit is at most `chance`.

    The integral of (t/p)^hits ((1-t)/(1-p))^misses over t from p to 1, divided by 1 - p; with whole numbers the tail of
    the beta distribution is a sum over a binomial's.
    """
    throws = hits + misses + 1
    beta = math.lgamma(hits + 1) + math.lgamma(misses + 1) - math.lgamma(throws + 1)
    logs = [
        math.lgamma(throws + 1)
        - math.lgamma(k + 1)
        - math.lgamma(throws - k + 1)
        + k * math.log(chance)
        + (throws - k) * math.log1p(-chance)
        for k in range(hits + 1)
    ]
    most = max(logs)
    tail = most + math.log(math.fsum(math.exp(value - most) for value in logs))
    return beta + min(tail, 0.0) - hits * math.log(chance) - (misses + 1) * math.log1p(-chance)
