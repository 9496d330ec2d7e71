"""Early stopping ends a collapse, forgives noise, and survives a restart."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.learning.limits.early_stopping import Advice, EarlyStopping


def run(shares: list[float], items: int = 1000) -> tuple[EarlyStopping, list[Advice]]:
    state, advices = EarlyStopping(drop=0.15, items=items), []
    for number, success in enumerate(shares):
        state, advice = state.observe(10 * number, success)
        advices.append(advice)
    return state, advices


def test_it_goes_on_while_success_rises_and_remembers_the_best_step() -> None:
    state, advices = run([0.4, 0.6, 0.55, 0.7, 0.65])
    assert {advice.action for advice in advices} == {"continue"}
    assert (state.best_step, state.best_success) == (30, 0.7)


def test_it_says_what_was_seen_of_the_step_that_is_taken_and_not_of_a_better_one() -> None:
    state, _ = run([0.4, 0.7, 0.65])
    assert (state.success_at(10), state.success_at(20)) == (0.7, 0.65)


def test_one_low_success_is_forgiven_and_two_in_a_row_are_not() -> None:
    assert not run([0.7, 0.54, 0.7, 0.54, 0.6])[0].stopped
    state, advices = run([0.5, 0.7, 0.55, 0.55])
    assert state.stopped
    assert (advices[-1].action, advices[-1].step) == ("stop_and_return_to", 10)
    assert [advice.action for advice in advices[:-1]] == ["continue"] * 3


def test_a_crash_needs_no_second_observation() -> None:
    _, advices = run([0.7, 0.4])
    assert advices[-1].action == "stop_and_return_to"
    assert advices[-1].step == 0


def test_few_items_need_a_deeper_fall() -> None:
    shares = [0.7, 0.5, 0.5]
    assert run(shares, items=400)[0].stopped
    assert not run(shares, items=40)[0].stopped
    assert run([0.7, 0.1, 0.1], items=40)[0].stopped


def test_equal_success_keeps_the_earlier_step() -> None:
    assert run([0.7, 0.7])[0].best_step == 0


def test_once_stopped_it_stays_stopped() -> None:
    assert run([0.7, 0.1, 0.9])[1][-1].action == "stop_and_return_to"


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20), st.data())
def test_a_restart_and_replayed_observations_change_nothing(shares: list[float], data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, len(shares)))
    back = data.draw(st.integers(0, cut))
    before, _ = run(shares[:cut])
    after = EarlyStopping.model_validate_json(before.model_dump_json())
    for number in range(back, len(shares)):
        after, _ = after.observe(10 * number, shares[number])
    assert after == run(shares)[0]


def test_the_reason_why_it_stopped_survives_a_restart() -> None:
    state, advices = run([0.7, 0.55, 0.55])
    again = EarlyStopping.model_validate(state.model_dump(mode="json"))
    assert again.stopped
    assert again.reason == advices[-1].reason
    assert "points below the best" in again.reason


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_it_returns_to_the_best_step_before_the_stop(shares: list[float]) -> None:
    state = EarlyStopping(drop=0.15, items=1000)
    seen: list[float] = []
    for number, success in enumerate(shares):
        state, advice = state.observe(number, success)
        seen.append(success)
        if advice.action == "stop_and_return_to":
            assert advice.step == seen.index(max(seen))
            return
    assert all(max(shares[: i + 1]) - success < 0.3 for i, success in enumerate(shares))


@pytest.mark.parametrize("level", [0.5, 0.65, 0.85])
def test_a_model_that_stays_at_its_best_is_hardly_ever_stopped_by_chance(level: float) -> None:
    rng, stopped, trainings = Random(1), 0, 1500
    for _ in range(trainings):
        shares = [sum(rng.random() < level for _ in range(96)) / 96 for _ in range(7)]
        stopped += run(shares, items=96)[0].stopped
    assert stopped / trainings < 0.02


@pytest.mark.parametrize("success", [-0.1, 1.1, float("nan")])
def test_what_is_not_a_share_is_refused(success: float) -> None:
    with pytest.raises(ValueError, match="share"):
        EarlyStopping(drop=0.1, items=96).observe(0, success)
