"""The interval of a share of attempts, several of them at one question: against simulated nights."""

from __future__ import annotations

from random import Random

import pytest

from appliance.records.clustered_interval import AttemptSums
from policies.statistics import wilson


def test_sums_of_parts_are_those_of_the_whole() -> None:
    counts = [(8, 3), (8, 8), (5, 0), (1, 1)]
    assert AttemptSums.of(counts[:2]) + AttemptSums.of(counts[2:]) == AttemptSums.of(counts)
    assert (AttemptSums().interval, AttemptSums.of([]).interval) == ((0.0, 1.0), (0.0, 1.0))


def test_one_attempt_at_each_question_is_nearly_wilson() -> None:
    ends = AttemptSums.of([(1, 1)] * 30 + [(1, 0)] * 70).interval
    assert ends == pytest.approx(wilson(30, 100, alpha=0.05), abs=0.005)
    assert AttemptSums.of([(8, 0)] * 10).interval == pytest.approx(wilson(0, 10, alpha=0.05))


def test_intervals_hold_the_true_rate_where_rollouts_of_a_task_are_alike() -> None:
    """60 tasks of 4 to 8 rollouts each: those of attempts that were independent hold it in 65 % of the nights."""
    rng, held, naive, trials = Random(3), 0, 0, 400
    for _ in range(trials):
        counts = []
        for _ in range(60):
            rate, n = rng.choice((0.05, 0.95, rng.random())), rng.randint(4, 8)
            counts.append((n, sum(rng.random() < rate for _ in range(n))))
        sums = AttemptSums.of(counts)
        low, high = sums.interval
        held += low <= 0.5 <= high
        low, high = wilson(sums.passed, sums.attempts, alpha=0.05)
        naive += low <= 0.5 <= high
    assert 0.92 <= held / trials <= 0.985
    assert naive / trials < 0.8
