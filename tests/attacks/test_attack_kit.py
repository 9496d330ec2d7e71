"""What is asked of a neighbour is seen to fail: one that is disturbed, or never called, fails its attack."""

from __future__ import annotations

import pytest
from attack_kit import LIMITS, OK, AttackBench, attack, p99

from runtime.errors import BadRequestError

NOTHING = attack(0, "nothing", "1", OK)


def test_a_neighbour_that_is_lost_fails_the_attack(bench: AttackBench, monkeypatch: pytest.MonkeyPatch) -> None:
    lost = bench.pool.sandbox(LIMITS)
    lost.close()
    monkeypatch.setattr(bench, "neighbour", lost)
    with pytest.raises(BadRequestError, match="closed"):
        bench.suffer(NOTHING)


def test_a_neighbour_that_answers_otherwise_fails_the_attack(
    bench: AttackBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = bench.pool.sandbox(LIMITS)
    other.run("x = -7")
    monkeypatch.setattr(bench, "neighbour", other)
    monkeypatch.setattr(bench, "_asked", 0)
    with pytest.raises(AssertionError):
        bench.suffer(NOTHING)
    other.close()


def test_a_neighbour_calls_once_at_the_least(bench: AttackBench) -> None:
    with bench.beside_a_neighbour() as taken:
        pass
    assert taken


def test_of_no_calls_nothing_is_said() -> None:
    with pytest.raises(IndexError):
        p99([])
