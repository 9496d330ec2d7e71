"""Chance that the next attempts at a job succeed, learned from the attempts at earlier ones. Pure.

The success rate p of a job is drawn from π₀ · δ₀ + (1 - π₀) · Beta(a, b): a share π₀ of jobs cannot be solved at all,
the others differ. With B the beta function, after n failures and no success:

    hopeless  π_n    = π₀ / (π₀ + (1 - π₀) B(a, b + n) / B(a, b))
    next      p_n    = (1 - π_n) a / (a + b + n)
    within k         = (1 - π_n) (1 - Π_{i<k} (b + n + i) / (a + b + n + i))

A job teaches how many attempts failed before, and how many were made together of which one succeeded: which of these
ended first says nothing about the others, so they count as one event. Naive fits extrapolate badly from few jobs
(2510.05197), so the estimate is the maximum of the likelihood times a normal prior around an earlier model, in the
coordinates of `_coordinates`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

PRECISION = 4.0
"""Precision of the prior in each coordinate: half a unit is one standard deviation."""
ROUNDS = 200
"""Maximum number of points from which the search looks around."""


class Tries(NamedTuple):
    """Judged attempts at one job."""

    failed: int
    """Attempts that failed, before any success."""
    last: int = 0
    """Attempts made together after those, at least one with success; 0 without any."""
    passed: int = 0
    """Attempts that succeeded, of a group that did not stop at the first success; `failed` are its others."""


@dataclass(frozen=True)
class SuccessModel:
    """Distribution of a job's success rate: `hopeless` is π₀, from 0 to 1 exclusive; `a` and `b` are positive."""

    hopeless: float
    a: float
    b: float

    def hopeless_after(self, failures: int) -> float:
        """Returns the probability that no attempt can succeed, after `failures` failures and no success."""
        others = (1 - self.hopeless) * math.exp(_log_missed(self.a, self.b, failures))
        return self.hopeless / (self.hopeless + others)

    def next_success(self, failures: int) -> float:
        """Returns the probability that the next attempt succeeds, after `failures` failures and no success."""
        return (1 - self.hopeless_after(failures)) * self.a / (self.a + self.b + failures)

    def success_within(self, failures: int, more: int) -> float:
        """Returns the probability that one of the next `more` attempts succeeds, after `failures` failures."""
        missed = math.exp(_log_missed(self.a, self.b + failures, more))
        return (1 - self.hopeless_after(failures)) * (1 - missed)

    def differing(self, passed: int, failed: int, more: int) -> float:
        """Returns the probability that these attempts and `more` further ones do not all come to the same."""
        if passed and failed:
            return 1.0
        if failed:
            return self.success_within(failed, more)
        if passed:
            return -math.expm1(_log_missed(self.b, self.a + passed, more))
        alike = math.exp(_log_missed(self.a, self.b, more)) + math.exp(_log_missed(self.b, self.a, more))
        return (1 - self.hopeless) * (1 - alike)

    def log_likelihood(self, tries: Tries) -> float:
        """Returns the log-likelihood of a job's attempts, in nats."""
        solvable = math.log1p(-self.hopeless) + _log_missed(self.a, self.b, tries.failed)
        if tries.passed:
            return solvable + _log_missed(self.b + tries.failed, self.a, tries.passed)
        if not tries.last:
            return _log_sum(math.log(self.hopeless), solvable)
        return solvable + math.log(-math.expm1(_log_missed(self.a, self.b + tries.failed, tries.last)))


ASSUMED = SuccessModel(hopeless=0.2, a=0.3, b=0.7)
"""Assumption without records: one job in five is out of reach, and a few easy ones are most of what succeeds."""


def fitted(records: Iterable[Tries], assumed: SuccessModel = ASSUMED) -> SuccessModel:
    """Returns the most plausible model of the jobs with these attempts, by maximum a posteriori. `assumed` is the
    centre of the prior, and the result without records. Equal records give equal models, in any order."""
    counts = sorted(Counter(one for one in records if sum(one)).items())
    if not counts:
        return assumed
    centre = _coordinates(assumed)

    def score(point: tuple[float, ...]) -> float:
        model = _model(point)
        apart = sum((here - there) ** 2 for here, there in zip(point, centre, strict=True))
        return sum(count * model.log_likelihood(tries) for tries, count in counts) - PRECISION * apart / 2

    best: tuple[float, ...] = centre
    top, step = score(centre), 1.0
    for _ in range(ROUNDS):  # compass search (Kolda, Lewis and Torczon, SIAM Review 45, 2003)
        around = [
            (*best[:axis], min(LIMIT, max(-LIMIT, best[axis] + way * step)), *best[axis + 1 :])
            for axis in range(len(best))
            for way in (1, -1)
        ]
        found, place = max((score(point), point) for point in around)
        if found > top:
            best, top = place, found
            continue
        step /= 2
        if step < 1e-3:
            break
    return _model(best)


LIMIT = 12.0
"""Farthest point searched: shares and rates from e^-12 to 1 - e^-12, concentrations up to e^12."""


def _coordinates(model: SuccessModel) -> tuple[float, float, float]:
    """Returns logit π₀, the logit of the mean success rate of the others, and the log of their concentration a + b."""
    return _logit(model.hopeless), math.log(model.a / model.b), math.log(model.a + model.b)


def _model(point: tuple[float, ...]) -> SuccessModel:
    hopeless, mean, total = _share(point[0]), _share(point[1]), math.exp(point[2])
    return SuccessModel(hopeless, mean * total, (1 - mean) * total)


def _logit(share: float) -> float:
    return math.log(share / (1 - share))


def _share(logit: float) -> float:
    return 1 / (1 + math.exp(-logit))


def _log_sum(one: float, other: float) -> float:
    low, high = sorted((one, other))
    return high + math.log1p(math.exp(low - high))


def _log_missed(a: float, b: float, count: int) -> float:
    """Returns the log-probability that `count` attempts fail whose success rate is drawn from Beta(a, b):
    log B(a, b + count) / B(a, b)."""
    return math.lgamma(b + count) - math.lgamma(b) - math.lgamma(a + b + count) + math.lgamma(a + b)
