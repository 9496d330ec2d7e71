"""95 % interval of a pass rate whose attempts are clustered by question. Pure.

Wilson's interval, with the effective number of attempts in place of their number: m (1 - m) divided by the variance of
the mean over questions (Korn and Graubard, Survey Methodology 24, 1998; clustered by question as in 2411.00640, section
2.2). As there, it shrinks when few questions estimate that variance (Student's t, one degree of freedom fewer than
questions); it never exceeds the number of attempts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from statistics import NormalDist
from typing import NamedTuple, Self

ALPHA = 0.05
NORMAL_FROM = 1_000
"""Degrees of freedom from which Student's t equals the normal distribution, to a thousandth."""


class AttemptSums(NamedTuple):
    """Sums over questions with `n` judged attempts each, `x` of them passed, that give a pass rate's interval; sums can
    be added."""

    questions: int = 0
    attempts: int = 0
    passed: int = 0
    passed_squared: int = 0
    """Sum of x²."""
    both: int = 0
    """Sum of x n."""
    attempts_squared: int = 0
    """Sum of n²."""

    @classmethod
    def of(cls, counts: Sequence[tuple[int, int]]) -> Self:
        """Builds the sums of a pass rate's interval from (attempts, passed) of each question."""
        return cls(
            len(counts),
            sum(n for n, _ in counts),
            sum(x for _, x in counts),
            sum(x * x for _, x in counts),
            sum(x * n for n, x in counts),
            sum(n * n for n, _ in counts),
        )

    def __add__(self, other: object) -> AttemptSums:
        assert isinstance(other, AttemptSums)
        return AttemptSums(*(one + more for one, more in zip(self, other, strict=True)))

    @property
    def interval(self) -> tuple[float, float]:
        """95 % interval of the pass rate; (0, 1) without attempts."""
        if not self.attempts:
            return 0.0, 1.0
        share = self.passed / self.attempts
        spread = self.passed_squared - 2 * share * self.both + share**2 * self.attempts_squared
        count = self.questions
        variance = count / (count - 1) * max(0.0, spread) / self.attempts**2 if count > 1 else 0.0
        return clustered(share, variance, count, self.attempts)


def clustered(mean: float, variance: float, questions: int, attempts: int) -> tuple[float, float]:
    """Returns the 95 % interval of a mean pass rate over `questions` (at least one); `variance` is that of the mean."""
    z = NormalDist().inv_cdf(1 - ALPHA / 2)
    effective = float(questions)
    if variance > 1e-12:
        known = mean * (1 - mean) / variance * (z / student_t(questions - 1)) ** 2
        effective = min(max(1.0, known), float(attempts))
    weight = 1 + z**2 / effective
    middle = (mean + z**2 / (2 * effective)) / weight
    half = z * math.sqrt(mean * (1 - mean) / effective + z**2 / (4 * effective**2)) / weight
    low = 0.0 if mean == 0 else max(0.0, middle - half)
    high = 1.0 if mean == 1 else min(1.0, middle + half)
    return low, high


@lru_cache(maxsize=10_000)
def student_t(degrees: int) -> float:
    """Returns the bound of Student's two-sided 95 % interval; the normal one for many degrees of freedom.

    >>> round(student_t(1), 3), round(student_t(4), 3), round(student_t(30), 3)
    (12.706, 2.776, 2.042)
    """
    if degrees > NORMAL_FROM:
        return NormalDist().inv_cdf(1 - ALPHA / 2)
    low, high = 0.0, 100.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _within(middle, degrees) < 1 - ALPHA else (low, middle)
    return (low + high) / 2


def _within(t: float, degrees: int) -> float:
    """Returns the probability that Student's t lies between -t and t (Abramowitz and Stegun, 26.7.3 and 26.7.4)."""
    angle = math.atan(t / math.sqrt(degrees))
    sine, square, odd = math.sin(angle), math.cos(angle) ** 2, degrees % 2
    term = total = math.cos(angle) if odd else 1.0
    for n in range(2 + odd, degrees - 1, 2):
        term *= square * (n - 1) / n
        total += term
    if not odd:
        return sine * total
    return 2 / math.pi * (angle + (sine * total if degrees > 1 else 0.0))
