"""RoC keeps variety among failures and quality among successes; the other selectors keep the same number."""

from __future__ import annotations

import math
from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tables import table

from appliance.learning.signal.roc import (
    CLEAN_OFFSET,
    SELECTORS,
    RolloutOutcome,
    above_mean,
    carry_signal,
    draw,
    roc,
    roc_sorted,
    uniform,
)


def rollout(reward: float, failed: int = 0, calls: int = 1, answers: int = 1) -> RolloutOutcome:
    return RolloutOutcome(reward=reward, calls=calls, failed_calls=failed, answers=answers, turns=calls + 1)


rewards = st.booleans().map(float) | st.sampled_from([0.1 + 0.2, 0.3, 0.5])
groups = st.lists(st.builds(rollout, rewards, st.integers(0, 2), st.just(2), st.integers(0, 3)), min_size=2)


@pytest.mark.parametrize("selector", SELECTORS)
@given(group=groups, data=st.data(), seed=st.integers(0, 2**32))
def test_every_selector_keeps_what_was_asked_for_with_different_rewards_in_it_or_nothing(
    selector: str, group: list[RolloutOutcome], data: st.DataObject, seed: int
) -> None:
    keep = data.draw(st.integers(2, len(group)))
    selected = SELECTORS[selector](group, keep, Random(seed))
    if len({outcome.reward for outcome in group}) == 1:
        assert selected == []
    elif selected or selector != "uniform":
        assert len(selected) == keep
        assert selected == sorted(set(selected))
        assert len({group[i].reward for i in selected}) > 1


@given(st.integers(1, 40), st.integers(1, 40), st.integers(0, 2**32))
def test_roc_keeps_the_floor_of_half_of_the_failures(wrong: int, right: int, seed: int) -> None:
    group = [rollout(False)] * wrong + [rollout(True)] * right
    keep = len(group) // 2
    if keep < 2:
        return
    selected = roc(group, keep, Random(seed))
    assert sum(group[i].reward == 0 for i in selected) == max(1, wrong * keep // len(group))


def test_of_32_with_20_failures_16_stay_and_10_of_them_failed_as_in_the_paper() -> None:
    group = [rollout(False)] * 20 + [rollout(True)] * 12
    selected = roc(group, 16, Random(0))
    assert sum(group[i].reward == 0 for i in selected) == 10


@pytest.mark.parametrize(
    ("outcome", "penalty"),
    [
        (rollout(True), 0.0),
        (rollout(True, failed=1, calls=4), 0.25),
        (rollout(True, calls=0), 0.5),
        (rollout(True, answers=0), 1.0),
        (rollout(True, calls=3, answers=3), 0.5),
        (rollout(True, calls=0, answers=9), 1.5),
        (rollout(True, failed=2, calls=2, answers=0), 2.0),
    ],
)
def test_the_penalty_is_the_papers(outcome: RolloutOutcome, penalty: float) -> None:
    assert outcome.penalty == pytest.approx(penalty)
    assert outcome.weight == pytest.approx(1 / (penalty + CLEAN_OFFSET))


def test_each_next_item_is_drawn_in_proportion_to_its_weight_among_those_left() -> None:
    rng, rounds = Random(3), 6000
    first: Counter[int] = Counter()
    pairs: Counter[tuple[int, ...]] = Counter()
    for _ in range(rounds):
        drawn = draw([0, 1, 2], [1.0, 2.0, 5.0], 2, rng)
        first[drawn[0]] += 1
        pairs[tuple(drawn)] += 1
    for item, share in ((0, 1 / 8), (1, 2 / 8), (2, 5 / 8)):
        assert first[item] / rounds == pytest.approx(share, abs=4 * math.sqrt(share * (1 - share) / rounds))
    after_the_heavy_one = pairs[(2, 1)] / (pairs[(2, 0)] + pairs[(2, 1)])
    assert after_the_heavy_one == pytest.approx(2 / 3, abs=0.04)


def test_a_clean_success_is_preferred_to_one_with_a_failed_call_but_not_always_taken() -> None:
    group = [rollout(True)] * 8 + [rollout(True, failed=1)] * 8 + [rollout(False)] * 16
    selected = [i for seed in range(400) for i in roc(group, 16, Random(seed))]
    clean, flawed = sum(i < 8 for i in selected), sum(8 <= i < 16 for i in selected)
    assert clean > 5 * flawed > 0


def test_failures_are_chosen_blindly_whatever_their_calls_did() -> None:
    group = [rollout(False)] * 8 + [rollout(False, failed=1)] * 8 + [rollout(True)] * 16
    selected = [i for seed in range(600) for i in roc(group, 16, Random(seed)) if i < 16]
    assert sum(i < 8 for i in selected) / len(selected) == pytest.approx(0.5, abs=0.04)


def test_the_released_rule_takes_the_cleanest_successes_and_the_first_failures() -> None:
    group = [rollout(True, failed=1), rollout(False, failed=1), rollout(True), rollout(True), rollout(False)] * 2
    assert roc_sorted(group, 5, Random(0)) == roc_sorted(group, 5, Random(1)) == [1, 2, 3, 4, 7]


def test_the_released_rule_has_floors_of_two() -> None:
    few_failures = [rollout(False)] * 2 + [rollout(True)] * 14
    few_successes = [rollout(True)] * 3 + [rollout(False)] * 29
    assert sum(few_failures[i].reward == 0 for i in roc_sorted(few_failures, 8, Random(0))) == 2
    assert sum(few_successes[i].reward == 1 for i in roc_sorted(few_successes, 8, Random(0))) == 2


def test_uniform_is_blind_to_form_and_to_outcome() -> None:
    group = [rollout(i % 2 == 0, failed=i % 3 % 2) for i in range(16)]
    counts = Counter(i for seed in range(2000) for i in uniform(group, 8, Random(seed)))
    assert all(abs(counts[i] - 1000) < 130 for i in range(16))


def test_uniform_gives_nothing_when_what_it_drew_is_all_alike() -> None:
    group = [rollout(True)] + [rollout(False)] * 15
    drawn = [uniform(group, 2, Random(seed)) for seed in range(200)]
    assert [] in drawn
    assert all(not selected or 0 in selected for selected in drawn)


@table("selector", SELECTORS)
@table("keep", [-1, 0, 1, 5])
def test_a_number_that_cannot_be_kept_is_refused(selector: str, keep: int) -> None:
    with pytest.raises(ValueError, match="cannot keep"):
        SELECTORS[selector]([rollout(True), rollout(False)] * 2, keep, Random(0))


@pytest.mark.parametrize("selector", SELECTORS)
def test_equal_seeds_choose_equally(selector: str) -> None:
    group = [rollout(i % 3 == 0, failed=i % 2) for i in range(32)]
    assert SELECTORS[selector](group, 16, Random(7)) == SELECTORS[selector](group, 16, Random(7))


def test_a_group_without_signal_is_one_whose_rewards_are_exactly_equal() -> None:
    """A spread worked out in floats is no such test: three times a tenth has one, and two neighbours have none."""
    assert not carry_signal([0.1] * 3)
    assert carry_signal([0.3, 0.1 + 0.2, 0.3])
    assert above_mean([0.3, 0.1 + 0.2, 0.3]) == [False, True, False]
    assert above_mean([1.0, 1.0, 1.0 - 2**-53]) == [True, True, False]
    assert above_mean([0.25, 0.5, 0.75, 0.5]) == [False, False, True, False]
    assert above_mean([0.1] * 3) == [False] * 3
