"""The statistics agree with published examples, with brute force and with simulation."""

from __future__ import annotations

import math
from itertools import product
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tables import table

from policies.statistics import mcnemar_exact, mcnemar_mid_p, paired_difference, score, wilson


@st.composite
def counts(draw: st.DrawFn, most: int = 400) -> tuple[int, int, int]:
    items = draw(st.integers(1, most))
    gained = draw(st.integers(0, items))
    return gained, draw(st.integers(0, items - gained)), items


def test_the_published_example_of_21_children_comes_out() -> None:
    """Airway hyper-responsiveness before and after transplantation (Fagerland, Lydersen & Laake 2013, 2014)."""
    assert mcnemar_exact(1, 7) == pytest.approx(0.0703, abs=5e-5)
    assert mcnemar_mid_p(1, 7) == pytest.approx(0.0391, abs=5e-5)
    assert paired_difference(1, 7, 21, alpha=0.05) == pytest.approx((-0.517, -0.026), abs=5e-4)


@table(("gained", "lost"), list(product(range(7), range(7))))
def test_mcnemar_is_what_tossing_all_coins_gives(gained: int, lost: int) -> None:
    discordant = gained + lost
    tosses = [sum(coins) for coins in product((0, 1), repeat=discordant)]
    distance = abs(gained - discordant / 2)
    further = sum(abs(heads - discordant / 2) > distance for heads in tosses) / len(tosses)
    equal = sum(abs(heads - discordant / 2) == distance for heads in tosses) / len(tosses)
    assert mcnemar_exact(gained, lost) == pytest.approx(further + equal)
    if discordant:
        assert mcnemar_mid_p(gained, lost) == pytest.approx(further + equal / 2)
    else:
        assert mcnemar_mid_p(0, 0) == 1.0


@given(st.integers(0, 3000), st.integers(0, 3000))
def test_p_values_are_symmetric_and_probabilities(gained: int, lost: int) -> None:
    assert 0 <= mcnemar_mid_p(gained, lost) <= mcnemar_exact(gained, lost) <= 1
    assert mcnemar_mid_p(gained, lost) == mcnemar_mid_p(lost, gained)


def test_the_mid_p_test_keeps_its_level() -> None:
    for discordant in (10, 25, 60, 150):
        weights = [math.comb(discordant, k) / 2**discordant for k in range(discordant + 1)]
        wrongly = sum(w for k, w in enumerate(weights) if mcnemar_mid_p(k, discordant - k) <= 0.05)
        assert 0.02 < wrongly < 0.056


def likelihood_score(gained: int, lost: int, items: int, difference: float) -> float:
    """The score statistic with the nuisance parameter found by search instead of by Tango's formula."""
    tied = items - gained - lost

    def log_likelihood(losing: float) -> float:
        rest = 1 - 2 * losing - difference
        terms = ((gained, losing + difference), (lost, losing), (tied, rest))
        return sum(n * math.log(max(p, 1e-300)) for n, p in terms if n)

    low, high = max(0.0, -difference), (1 - difference) / 2
    for _ in range(120):
        one, two = low + (high - low) / 3, high - (high - low) / 3
        low, high = (one, high) if log_likelihood(one) < log_likelihood(two) else (low, two)
    losing = (low + high) / 2
    return (gained - lost - items * difference) / math.sqrt(items * (2 * losing + difference * (1 - difference)))


@given(counts(most=80), st.floats(-0.9, 0.9))
def test_the_score_is_that_of_the_likeliest_loss_found_by_search(data: tuple[int, int, int], difference: float) -> None:
    assert score(*data, difference) == pytest.approx(likelihood_score(*data, difference), rel=1e-4, abs=1e-4)


@given(counts(), st.sampled_from([0.2, 0.05, 0.01]))
def test_the_interval_holds_what_was_seen_and_mirrors(data: tuple[int, int, int], alpha: float) -> None:
    gained, lost, items = data
    low, high = paired_difference(gained, lost, items, alpha=alpha)
    assert -1 <= low <= (gained - lost) / items + 1e-12
    assert (gained - lost) / items - 1e-12 <= high <= 1
    assert low < high
    assert paired_difference(lost, gained, items, alpha=alpha) == pytest.approx((-high, -low), abs=1e-9)


@given(counts(), st.integers(2, 6))
def test_more_items_of_the_same_kind_narrow_the_interval(data: tuple[int, int, int], times: int) -> None:
    gained, lost, items = data
    low, high = paired_difference(gained, lost, items, alpha=0.05)
    more_low, more_high = paired_difference(gained * times, lost * times, items * times, alpha=0.05)
    assert more_high - more_low < high - low


@given(counts())
def test_a_smaller_alpha_widens_the_interval(data: tuple[int, int, int]) -> None:
    low, high = paired_difference(*data, alpha=0.05)
    wide_low, wide_high = paired_difference(*data, alpha=0.01)
    assert wide_low <= low <= high <= wide_high


@pytest.mark.parametrize(
    ("gaining", "losing", "items"), [(0.1, 0.1, 60), (0.3, 0.02, 60), (0.02, 0.02, 30), (0, 0.2, 40)]
)
def test_the_interval_covers_the_truth_as_often_as_it_says(gaining: float, losing: float, items: int) -> None:
    rng = Random(11)
    rounds, covered, wald_covered = 1200, 0, 0
    for _ in range(rounds):
        draws = [rng.random() for _ in range(items)]
        gained = sum(draw < gaining for draw in draws)
        lost = sum(gaining <= draw < gaining + losing for draw in draws)
        low, high = paired_difference(gained, lost, items, alpha=0.05)
        covered += low <= gaining - losing <= high
        gain = (gained - lost) / items
        spread = 1.96 * math.sqrt(max(0.0, (gained + lost) / items - gain**2) / items)
        wald_covered += gain - spread <= gaining - losing <= gain + spread
    assert covered / rounds > 0.93
    assert covered >= wald_covered


def test_without_discordant_items_the_interval_still_has_a_width() -> None:
    low, high = paired_difference(0, 0, 32, alpha=0.1)
    z = 1.6448536
    assert (low, high) == pytest.approx((-(z**2) / (32 + z**2), z**2 / (32 + z**2)), abs=1e-6)


@given(st.integers(1, 500).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), st.sampled_from([0.05, 0.01]))
def test_wilson_ends_are_where_the_score_test_just_rejects(data: tuple[int, int], alpha: float) -> None:
    successes, items = data
    z = {0.05: 1.959963985, 0.01: 2.575829304}[alpha]
    low, high = wilson(successes, items, alpha=alpha)
    assert 0 <= low <= successes / items <= high <= 1
    for end in (low, high):
        if 0 < end < 1:
            assert abs(successes - items * end) / math.sqrt(items * end * (1 - end)) == pytest.approx(z, rel=1e-6)


def test_wilson_gives_the_textbook_interval() -> None:
    assert wilson(81, 263, alpha=0.05) == pytest.approx((0.2553, 0.3662), abs=5e-5)


@pytest.mark.parametrize(("gained", "lost", "items"), [(-1, 0, 10), (0, -1, 10), (6, 5, 10), (0, 0, 0)], ids=str)
def test_counts_that_cannot_be_are_refused(gained: int, lost: int, items: int) -> None:
    with pytest.raises(ValueError, match=r"negative|fit into"):
        paired_difference(gained, lost, items, alpha=0.05)


@pytest.mark.parametrize("alpha", [0.0, 1.0, -0.1, 2.0])
def test_an_alpha_that_is_no_probability_is_refused(alpha: float) -> None:
    with pytest.raises(ValueError, match="alpha"):
        paired_difference(1, 1, 10, alpha=alpha)
    with pytest.raises(ValueError, match="alpha"):
        wilson(1, 10, alpha=alpha)


def test_more_successes_than_items_are_refused() -> None:
    with pytest.raises(ValueError, match="not a proportion"):
        wilson(11, 10, alpha=0.05)
