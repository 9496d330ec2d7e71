"""`benchmarks/budgets.py` in its short form: the choice of attempts costs little more than an oracle's."""

from __future__ import annotations

import random

import pytest

from benchmarks.budgets import BIN, WORLDS, Learner, oracle, outside, simulated


@pytest.mark.parametrize("world", WORLDS)
def test_what_is_learned_from_the_jobs_before_costs_little_more_than_knowing_their_distribution(world: str) -> None:
    found = simulated(world, 400, 0, oracle(WORLDS[world], samples=2_000))
    assert found["cost"] <= (1.10 if world == "zero-inflated beta" else 1.25)
    assert found["at_once"] < 1.5
    assert found["solved"] > found["oracle_solved"] - 0.04


def test_hopeless_jobs_soon_get_their_first_step_alone() -> None:
    learner = Learner()
    for _ in range(300):
        learner.work("hopeless", iter([False] * 16))
    spent = learner.spent.attempts
    learner.work("hopeless", iter([False] * 16))
    assert learner.spent.attempts == spent + 2


def test_a_bin_of_predictions_is_outside_only_if_chance_does_not_explain_it() -> None:
    rng = random.Random(0)
    chances = [rng.random() for _ in range(4 * BIN)]
    honest = [(chance, rng.random() < chance) for chance in chances]
    assert outside(honest) == []
    assert len(outside([(chance, rng.random() < chance**2) for chance in chances])) >= 2
