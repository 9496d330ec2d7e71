"""A canary is taken back when the jobs say so, seldom when they do not, and its window always closes."""

from __future__ import annotations

import math
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.canary_windows import Service, simulate_service
from policies.canary import Counts, arm, describe, is_wanted, log_odds_of_drop, step_of
from policies.contract.rules import ServiceRules
from policies.policy import load

RULES = load().service
SINCE = "2026-01-01T00:00:00+00:00"


def bet_by_sum(hits: int, misses: int, chance: float, steps: int = 20_000) -> float:
    """The mixture's value by adding up, straight from its definition."""
    width = (1 - chance) / steps
    middles = [chance + (number + 0.5) * width for number in range(steps)]
    return math.fsum((t / chance) ** hits * ((1 - t) / (1 - chance)) ** misses for t in middles) / steps


@pytest.mark.parametrize(("hits", "misses", "chance"), [(0, 0, 0.25), (7, 0, 0.5), (5, 9, 0.25), (30, 4, 0.75)])
def test_the_odds_are_the_average_of_all_bets(hits: int, misses: int, chance: float) -> None:
    counts = Counts(canary_failed=hits, champion_failed=misses)
    assert log_odds_of_drop(counts, chance) == pytest.approx(math.log(bet_by_sum(hits, misses, chance)), abs=1e-4)


@given(st.integers(0, 60), st.integers(0, 60), st.floats(0.05, 0.95))
def test_a_bet_is_fair_where_the_coin_has_its_largest_chance(hits: int, misses: int, chance: float) -> None:
    """The expectation of the next odds is the odds: the martingale that Ville's inequality is about."""
    now = log_odds_of_drop(Counts(canary_failed=hits, champion_failed=misses), chance)
    up = log_odds_of_drop(Counts(canary_failed=hits + 1, champion_failed=misses), chance)
    down = log_odds_of_drop(Counts(canary_failed=hits, champion_failed=misses + 1), chance)
    assert chance * math.exp(up - now) + (1 - chance) * math.exp(down - now) == pytest.approx(1, rel=1e-6)
    assert up >= down


def test_who_answers_follows_from_the_job_alone_and_comes_close_to_the_share() -> None:
    names = [f"job-{number}" for number in range(4_000)]
    arms = [arm(name, 0.25, "canary-1") for name in names]
    assert arms == [arm(name, 0.25, "canary-1") for name in names]
    assert 0.22 < arms.count("canary") / len(arms) < 0.28
    assert arms != [arm(name, 0.25, "canary-2") for name in names]


def test_the_window_closes_after_hours_and_jobs_and_never_stays_open() -> None:
    def step(counts: Counts, now: str, since: str = SINCE) -> str:
        return step_of(counts, RULES, share_since=since, now=now)

    enough = Counts(canary_passed=RULES.min_jobs)
    assert step(Counts(to_replay=1), SINCE, since="") == "replay"
    assert step(Counts(replayed=3), SINCE, since="") == "share"
    assert step(enough, "2026-01-01T23:59:59+00:00") == "share"
    assert step(enough, "2026-01-02T00:00:00+00:00") == "passed"
    assert step(Counts(), "2026-01-05T00:00:00+00:00") == "share"
    assert step(Counts(), "2026-01-08T00:00:00+00:00") == "passed"
    assert step(Counts(lost=7, to_replay=5), SINCE, since="") == "dropped"
    assert "odds of 31.9 to 1" in describe(Counts(replayed=7, lost=7), RULES)


def test_without_jobs_to_compare_on_there_is_no_window() -> None:
    assert not is_wanted(RULES, RULES.min_jobs - 1)
    assert is_wanted(RULES, RULES.min_jobs)
    assert not is_wanted(RULES.model_copy(update={"canary": False}), 1_000)


def test_noise_seldom_takes_back_and_a_fall_does_soon() -> None:
    null = simulate_service(RULES, Service(champion=0.8, canary=0.8, windows=400, seed=3))
    assert null.taken_back_low <= RULES.alpha
    broken = simulate_service(RULES, Service(champion=0.8, canary=0.05, windows=100, seed=3))
    assert broken.taken_back >= 0.99
    assert broken.median_jobs is not None
    assert broken.median_jobs <= 2
    worse = simulate_service(RULES, Service(champion=0.8, canary=0.3, windows=100, seed=3))
    assert worse.taken_back > 0.9


def test_harder_jobs_as_the_days_go_by_take_nothing_back() -> None:
    """Both get worse alike: what is compared is the two at the same time."""
    random, reached = Random(5), 0
    for _ in range(300):
        counts = {"canary_passed": 0, "canary_failed": 0, "champion_passed": 0, "champion_failed": 0}
        for number in range(60):
            who = "canary" if random.random() < RULES.share else "champion"
            how = "passed" if random.random() < (0.95 if number < 20 else 0.3) else "failed"
            counts[f"{who}_{how}"] += 1
            if log_odds_of_drop(Counts(**counts), RULES.share) >= -math.log(RULES.alpha):
                reached += 1
                break
    assert reached / 300 <= 0.08


def test_a_window_that_could_not_close_is_refused() -> None:
    with pytest.raises(ValueError, match="less than window_hours"):
        ServiceRules(**{**RULES.model_dump(), "max_hours": 1.0})
