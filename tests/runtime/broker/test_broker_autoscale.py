"""What is kept ready follows what was asked for, and never more than there is room for."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from runtime.broker.autoscale import HALF_LIFE, Demand

MOMENTS = st.lists(st.tuples(st.sampled_from("abc"), st.floats(0, 300)), max_size=60).map(
    lambda asked: sorted(asked, key=lambda pair: pair[1])
)


def after(asked: list[tuple[str, float]], moment: float, cap: int) -> dict[str, int]:
    demand: Demand[str] = Demand()
    for key, when in asked:
        demand.asked(key, when)
    return demand.targets(moment, cap)


@given(MOMENTS, st.floats(300, 2_000), st.integers(0, 20))
def test_never_more_than_the_cap_and_never_for_nobody(asked: list[tuple[str, float]], moment: float, cap: int) -> None:
    found = after(asked, moment, cap)
    assert sum(found.values()) <= cap
    assert set(found) <= {key for key, _ in asked}
    assert all(copies > 0 for copies in found.values())


@given(MOMENTS, st.floats(300, 600), st.integers(0, 12))
def test_more_demand_for_one_never_means_fewer_of_it(asked: list[tuple[str, float]], moment: float, cap: int) -> None:
    more = [pair for pair in asked for _ in range(2 if pair[0] == "a" else 1)]
    assert after(more, moment, cap).get("a", 0) >= after(asked, moment, cap).get("a", 0)


@given(MOMENTS)
def test_what_nobody_asks_for_any_more_fades_to_nothing(asked: list[tuple[str, float]]) -> None:
    assert after(asked, 300 + 12 * HALF_LIFE, 100) == {}


def test_a_burst_finds_itself_ready_the_next_time() -> None:
    assert after([("a", 0.0)] * 8, 1.0, 100) == {"a": 8}
    assert after([("a", 0.0)] * 8, HALF_LIFE, 100) == {"a": 4}


def test_one_use_keeps_one_copy_for_some_minutes() -> None:
    assert after([("a", 0.0)], 60.0, 8) == {"a": 1}
    assert after([("a", 0.0)], 600.0, 8) == {}


def test_images_share_by_their_demand() -> None:
    asked = [("often", 0.0)] * 12 + [("seldom", 0.0)] * 4
    assert after(asked, 0.5, 8) == {"often": 6, "seldom": 2}


def test_a_start_that_takes_longer_is_begun_earlier() -> None:
    demand: Demand[str] = Demand()
    for _ in range(3):
        demand.asked("slow", 0.0)
        demand.asked("quick", 0.0)
    for _ in range(50):
        demand.refilled("slow", 4.0)
        demand.refilled("quick", 0.1)
    found = demand.targets(0.0, 100)
    assert found["slow"] == 4 * found["quick"]


def test_a_clock_that_stands_still_or_goes_back_is_borne() -> None:
    assert after([("a", 10.0), ("a", 5.0), ("a", 10.0)], 4.0, 8) == {"a": 3}
