"""A loss is seldom let through however often one looks, a taskset without one passes, and a ratchet stops."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from property_budget import examples

from policies.contract.decision import GateOutcome
from policies.contract.evidence import PairCounts
from policies.gates.tasksets import NonRegressionRules, nights_outcome
from policies.policy import load
from policies.simulate import Assumed, simulate
from policies.statistics import wilson
from policies.statistics.sequential import bounds, level_of, log_not_worse, log_worse, questions_needed

POLICY = load()
RULES = NonRegressionRules(margin=10.0, alpha=0.05, min_items=20)
margins = st.sampled_from([0.01, 0.05, 0.1, 0.3, 0.9])
counts = st.integers(1, 400).flatmap(
    lambda items: st.integers(0, items).flatmap(
        lambda apart: st.integers(0, apart).map(lambda gained: (gained, apart - gained, items))
    )
)


@given(margins, st.integers(0, 12), st.floats(0, 1))
def test_no_mean_at_the_margin_makes_the_odds_grow_on_average(margin: float, items: int, share: float) -> None:
    """The expected capital of `items` questions with exactly that loss is at most 1: what Ville's inequality needs."""
    lost = margin + share * (1 - margin) / 2
    gained = lost - margin
    for log, gone, won in ((log_not_worse, lost, gained), (log_worse, lost, gained)):
        expected = sum(
            math.exp(log(ups, downs, items, margin))
            * math.comb(items, ups)
            * math.comb(items - ups, downs)
            * won**ups
            * gone**downs
            * max(0.0, 1 - won - gone) ** (items - ups - downs)
            for ups in range(items + 1)
            for downs in range(items + 1 - ups)
        )
        assert expected == pytest.approx(1.0, abs=1e-9)


@given(counts, margins)
def test_a_better_answer_never_speaks_against_a_candidate(data: tuple[int, int, int], margin: float) -> None:
    gained, lost, items = data
    if lost:
        assert log_not_worse(gained, lost - 1, items, margin) > log_not_worse(*data, margin)
        assert log_worse(gained, lost - 1, items, margin) < log_worse(*data, margin)
    if gained + lost < items:
        assert log_not_worse(gained + 1, lost, items, margin) > log_not_worse(*data, margin)


@given(counts, margins, st.sampled_from([0.05, 0.001]))
def test_bounds_say_what_the_odds_say(data: tuple[int, int, int], margin: float, alpha: float) -> None:
    low, high = bounds(*data, margin=margin, alpha=alpha)
    assert low <= (data[0] - data[1]) / data[2] <= high
    enough = -math.log(alpha)
    for is_shown, log in ((low >= -margin, log_not_worse(*data, margin)), (high <= -margin, log_worse(*data, margin))):
        assert is_shown == (log >= enough) or log == pytest.approx(enough, abs=1e-6)


def test_impossible_counts_and_margins_are_refused() -> None:
    for wrong in ((3, 3, 5, 0.1), (-1, 0, 5, 0.1), (1, 1, 5, 0.0), (1, 1, 5, 1.0)):
        with pytest.raises(ValueError, match=r"fit|margin"):
            log_not_worse(*wrong)
    with pytest.raises(ValueError, match="numbered from 1"):
        level_of(0.05, 0)


@given(st.integers(1, 10_000))
def test_all_that_share_alpha_have_no_more_than_alpha(number: int) -> None:
    assert sum(level_of(0.05, k) for k in range(1, number + 1)) <= 0.05


def test_the_number_of_questions_is_the_least_that_shows_it() -> None:
    needed = questions_needed(0.1, 0.05, gained=0.0, lost=0.0)
    assert needed == 47
    assert log_not_worse(0, 0, needed, 0.1) >= math.log(20) > log_not_worse(0, 0, needed - 1, 0.1)
    assert questions_needed(0.1, 0.05, gained=0.0, lost=0.2) is None


def share_passed(loss: float, discordant: float, *, runs: int, items: int = 102, families: int = 1, seed: int) -> int:
    """Counts simulated candidates of which every taskset passed within five nights, at the level of the first."""
    rng = np.random.default_rng(seed)
    apart = rng.binomial(items, discordant, size=(runs, families, 5))
    gained = rng.binomial(apart, 0.5 - loss / (2 * discordant))
    won, gone = gained.cumsum(axis=2).tolist(), (apart - gained).cumsum(axis=2).tolist()
    return sum(
        all(
            nights_outcome(
                [PairCounts(items * (n + 1), ups[n], downs[n]) for n in range(5)], RULES, level_of(RULES.alpha, 1)
            )
            is GateOutcome.PASSED
            for ups, downs in zip(won[run], gone[run], strict=True)
        )
        for run in range(runs)
    )


@pytest.mark.parametrize("discordant", [0.1, 0.2])
def test_five_tasksets_without_a_loss_pass_within_five_nights(discordant: float) -> None:
    assert share_passed(0.0, discordant, runs=500, families=5, seed=3) / 500 >= 0.8


@pytest.mark.parametrize(("loss", "discordant"), [(0.1, 0.1), (0.1, 0.2), (0.1, 0.4), (0.15, 0.2)])
def test_a_loss_of_the_margin_seldom_ever_passes(loss: float, discordant: float) -> None:
    runs = examples(20_000, quick=2_000)
    passed = share_passed(loss, discordant, runs=runs, seed=4)
    assert wilson(passed, runs, alpha=0.02)[1] <= RULES.alpha


def test_promotions_that_lose_four_points_each_are_stopped_by_the_third_and_were_not_before() -> None:
    found = simulate(POLICY, Assumed(quarters=150, nights=1, within=5, discordant=10.0, items=512, families=5, seed=6))
    assert found.stopped_share >= 0.95
    assert found.stopped_share_before == 0.0
    assert found.lost_points <= 10.0 < 30.0 <= found.lost_points_before
