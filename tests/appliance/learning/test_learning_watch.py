"""The watch stops a collapse, forgives noise, and survives a restart."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.learning.watch import Advice, Watch


def run(looks: list[float], items: int = 1000) -> tuple[Watch, list[Advice]]:
    watch, heard = Watch(drop=0.15, items=items), []
    for number, success in enumerate(looks):
        watch, advice = watch.look(10 * number, success)
        heard.append(advice)
    return watch, heard


def test_it_goes_on_while_success_rises_and_remembers_the_best_step() -> None:
    watch, heard = run([0.4, 0.6, 0.55, 0.7, 0.65])
    assert {advice.action for advice in heard} == {"continue"}
    assert (watch.best_step, watch.best_success) == (30, 0.7)


def test_one_bad_look_is_forgiven_and_two_in_a_row_are_not() -> None:
    assert not run([0.7, 0.54, 0.7, 0.54, 0.6])[0].stopped
    watch, heard = run([0.5, 0.7, 0.55, 0.55])
    assert watch.stopped
    assert (heard[-1].action, heard[-1].step) == ("stop_and_return_to", 10)
    assert [advice.action for advice in heard[:-1]] == ["continue"] * 3


def test_a_crash_needs_no_second_look() -> None:
    _, heard = run([0.7, 0.4])
    assert heard[-1].action == "stop_and_return_to"
    assert heard[-1].step == 0


def test_few_items_need_a_deeper_fall() -> None:
    looks = [0.7, 0.5, 0.5]
    assert run(looks, items=400)[0].stopped
    assert not run(looks, items=40)[0].stopped
    assert run([0.7, 0.1, 0.1], items=40)[0].stopped


def test_equal_success_keeps_the_earlier_step() -> None:
    assert run([0.7, 0.7])[0].best_step == 0


def test_once_stopped_it_stays_stopped() -> None:
    assert run([0.7, 0.1, 0.9])[1][-1].action == "stop_and_return_to"


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20), st.data())
def test_a_restart_and_replayed_looks_change_nothing(looks: list[float], data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, len(looks)))
    back = data.draw(st.integers(0, cut))
    before, _ = run(looks[:cut])
    after = Watch.model_validate_json(before.model_dump_json())
    for number in range(back, len(looks)):
        after, _ = after.look(10 * number, looks[number])
    assert after == run(looks)[0]


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_it_returns_to_the_best_look_before_the_stop(looks: list[float]) -> None:
    watch = Watch(drop=0.15, items=1000)
    seen: list[float] = []
    for number, success in enumerate(looks):
        watch, advice = watch.look(number, success)
        seen.append(success)
        if advice.action == "stop_and_return_to":
            assert advice.step == seen.index(max(seen))
            return
    assert all(max(looks[: i + 1]) - success < 0.3 for i, success in enumerate(looks))


@pytest.mark.parametrize("level", [0.5, 0.65, 0.85])
def test_a_model_that_stays_at_its_best_is_hardly_ever_stopped_by_chance(level: float) -> None:
    rng, stopped, trainings = Random(1), 0, 1500
    for _ in range(trainings):
        looks = [sum(rng.random() < level for _ in range(96)) / 96 for _ in range(7)]
        stopped += run(looks, items=96)[0].stopped
    assert stopped / trainings < 0.02


@pytest.mark.parametrize("success", [-0.1, 1.1, float("nan")])
def test_what_is_not_a_share_is_refused(success: float) -> None:
    with pytest.raises(ValueError, match="share"):
        Watch(drop=0.1, items=96).look(0, success)
