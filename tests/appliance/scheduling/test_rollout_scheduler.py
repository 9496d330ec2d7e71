"""Rollouts are admitted by the memory that they will need, and nothing of them is lost."""

from __future__ import annotations

import json
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from property_budget import examples

from appliance.scheduling.lengths import RANGES, LengthCurve, LengthTable
from appliance.scheduling.scheduler import Placed, Scheduler, SchedulerState

LONGEST = 640
WIDTH = LONGEST // RANGES


def fresh(capacity: int, *, engines: int = 1, state: SchedulerState | None = None) -> Scheduler:
    names = {f"engine-{number}": capacity for number in range(engines)}
    return Scheduler(names, state or SchedulerState(lengths=LengthTable(longest=LONGEST)))


def experienced(tokens: int) -> SchedulerState:
    """What a scheduler knows after a thousand rollouts that all ended with so many tokens."""
    curve = LengthCurve(LengthTable(longest=LONGEST))
    place = curve.range_of(tokens)
    for _ in range(1000):
        curve.grew(0, place)
        curve.end(place)
    return SchedulerState(lengths=curve.table(), caution=0.0)


def queued(scheduler: Scheduler, count: int, *, group: str = "", tokens: int = 5) -> None:
    for number in range(count):
        scheduler.submit(f"{group}r{number}", group or f"g{number}", tokens)


def test_before_anything_is_known_every_rollout_is_taken_to_be_as_long_as_it_may_be() -> None:
    scheduler = fresh(4 * LONGEST)
    queued(scheduler, 20)
    assert len(scheduler.admit()) == 4


def test_what_ended_short_lets_more_run_at_once() -> None:
    scheduler = fresh(4 * LONGEST, state=experienced(LONGEST // 8))
    queued(scheduler, 60)
    assert 28 <= len(scheduler.admit()) <= 34


def test_rollouts_under_way_are_no_evidence_that_all_are_short() -> None:
    """Of those that run at once the short ones end first: half of these do, and half go on."""
    curve = LengthCurve(LengthTable(longest=LONGEST))
    for _ in range(500):
        curve.end(0)
        curve.grew(0, RANGES // 2)
    alive = curve.alive()
    assert alive[0, 1] == pytest.approx(0.5, abs=0.01)
    assert alive[1, RANGES // 2 - 1] == pytest.approx(1.0, abs=0.01)


def test_the_short_ones_of_a_large_batch_do_not_wipe_out_what_is_known_of_long_ones() -> None:
    scheduler = Scheduler({}, experienced(LONGEST))
    scheduler.add_engine("engine-0", None, rows=20_000)
    queued(scheduler, 20_000)
    for placed in scheduler.admit():
        scheduler.finish(placed.rollout)
    assert scheduler.state.lengths.ended[-1] >= 500


def test_memory_is_refilled_as_it_frees_in_the_order_of_the_queue() -> None:
    scheduler = fresh(2 * LONGEST)
    queued(scheduler, 4)
    first, second = scheduler.admit()
    assert scheduler.admit() == []
    scheduler.finish(second.rollout)
    assert [one.rollout for one in scheduler.admit()] == ["r2"]
    assert first.rollout == "r0"


def test_what_had_begun_is_admitted_before_what_waited_longer() -> None:
    scheduler = fresh(LONGEST)
    queued(scheduler, 3)
    scheduler.submit("begun", "g", 5, begun=True)
    assert [placed.rollout for placed in scheduler.admit()] == ["begun"]


def test_an_engine_that_has_none_is_given_one_whatever_the_forecast() -> None:
    scheduler = fresh(LONGEST // 2)
    queued(scheduler, 2)
    assert len(scheduler.admit()) == 1


def test_a_rollout_that_no_engine_can_hold_waits_and_blocks_nobody_for_ever() -> None:
    scheduler = fresh(40)
    scheduler.submit("long", "g", 60)
    assert scheduler.admit() == []
    scheduler.add_engine("larger", 80)
    assert scheduler.admit() == [Placed("long", "larger")]


def test_a_group_stays_together_while_its_engine_has_room() -> None:
    scheduler = fresh(8 * LONGEST, engines=3)
    for group in "abc":
        queued(scheduler, 4, group=group)
    engines: dict[str, set[str]] = {}
    for placed in scheduler.admit():
        engines.setdefault(placed.rollout[0], set()).add(placed.engine)
    assert {len(found) for found in engines.values()} == {1}
    assert len(set.union(*engines.values())) == 3


def test_before_memory_runs_out_the_shortest_are_set_back_and_go_on_first() -> None:
    scheduler = fresh(LONGEST, state=experienced(WIDTH * 4))
    queued(scheduler, 12)
    running = [one.rollout for one in scheduler.admit()]
    assert len(running) == 12
    for number, rollout in enumerate(running):
        scheduler.grow(rollout, 45 + 2 * number)
    assert scheduler.set_back(growth=5) == ["r0", "r1"]  # 672 tokens, and 60 soon; 45 and 47 of them in these
    scheduler.submit("new", "g", 5)
    for rollout in running[2:]:
        scheduler.finish(rollout)
    assert scheduler.admit()[0].rollout == "r0"


def test_what_has_to_be_computed_again_makes_it_admit_less() -> None:
    bold, careful = (fresh(4 * LONGEST, state=experienced(LONGEST // 8)) for _ in range(2))
    rng = Random(0)
    for scheduler in (bold, careful):
        for number in range(40):  # lengths that differ, so that there is something to be careful about
            scheduler.submit(f"old{number}", "g", 5)
        for placed in scheduler.admit():
            scheduler.grow(placed.rollout, rng.randint(5, LONGEST))
            scheduler.finish(placed.rollout)
        for placed in scheduler.admit():
            scheduler.drop(placed.rollout)
    careful.note_evictions(4 * LONGEST)
    for scheduler in (bold, careful):
        queued(scheduler, 60)
    assert len(careful.admit()) < len(bold.admit())


def test_what_ran_on_a_lost_engine_goes_on_elsewhere_before_what_has_not_begun() -> None:
    scheduler = fresh(2 * LONGEST, engines=2)
    queued(scheduler, 6)
    placed = scheduler.admit()
    lost = [one.rollout for one in placed if one.engine == "engine-0"]
    assert scheduler.remove_engine("engine-0") == lost
    for one in placed:
        if one.engine == "engine-1":
            scheduler.finish(one.rollout)
    assert [one.rollout for one in scheduler.admit()][: len(lost)] == lost


def test_no_engine_has_more_than_it_has_rows_and_without_a_bound_on_memory_the_emptiest_is_next() -> None:
    scheduler = Scheduler({}, SchedulerState(lengths=LengthTable(longest=LONGEST)))
    scheduler.add_engine("two", None, rows=2)
    scheduler.add_engine("three", None, rows=3)
    queued(scheduler, 9, tokens=LONGEST)
    assert [one.engine for one in scheduler.admit()] == ["three", "two", "three", "two", "three"]
    assert (scheduler.queued, scheduler.admit()) == (4, [])


def test_its_state_goes_through_json_and_decides_the_same() -> None:
    kept = fresh(4 * LONGEST, state=experienced(100))
    again = fresh(4 * LONGEST, state=SchedulerState.model_validate_json(kept.state.model_dump_json()))
    for scheduler in (kept, again):
        queued(scheduler, 40)
    assert kept.admit() == again.admit()
    assert json.loads(kept.state.model_dump_json())["caution"] == 0.0


@pytest.mark.parametrize(
    "wrong", [{"longest": 0}, {"longest": 5, "ended": (-1.0,) * RANGES}, {"longest": 5, "passed": (float("nan"),)}]
)
def test_a_table_that_cannot_be_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"longest|ended|passed"):
        LengthTable.model_validate(wrong)


def test_a_rollout_is_submitted_once_and_no_longer_than_the_longest() -> None:
    scheduler = fresh(LONGEST)
    scheduler.submit("a", "g", 5)
    with pytest.raises(ValueError, match="known"):
        scheduler.submit("a", "g", 5)
    with pytest.raises(ValueError, match="row"):
        scheduler.add_engine("none", None)
    with pytest.raises(ValueError, match=f"1 to {LONGEST}"):
        scheduler.submit("b", "g", LONGEST + 1)
    with pytest.raises(KeyError):
        scheduler.finish("a")


@settings(max_examples=examples(60), deadline=None)
@given(st.randoms(use_true_random=False), st.integers(1, 4))
def test_whatever_happens_each_rollout_runs_on_one_engine_and_ends_once(rng: Random, engines: int) -> None:
    scheduler = fresh(2 * LONGEST, engines=engines)
    finals = {f"r{number}": rng.randint(6, LONGEST) for number in range(40)}
    for number, rollout in enumerate(finals):
        scheduler.submit(rollout, f"g{number // 8}", 5)
    tokens, ended = dict.fromkeys(finals, 5), []
    where: dict[str, str] = {}
    for _ in range(20_000):
        for placed in scheduler.admit():
            assert placed.rollout not in where
            where[placed.rollout] = placed.engine
        for rollout in list(where):
            tokens[rollout] = min(finals[rollout], tokens[rollout] + rng.randint(1, 40))
            scheduler.grow(rollout, tokens[rollout])
            if tokens[rollout] == finals[rollout]:
                scheduler.finish(rollout)
                ended.append(rollout)
                del where[rollout]
        for rollout in scheduler.set_back(growth=40):
            del where[rollout]
        if engines > 1 and rng.random() < 0.02:
            lost = rng.choice(sorted(set(where.values())) or ["engine-0"])
            if lost != "engine-0":
                for rollout in scheduler.remove_engine(lost):
                    del where[rollout]
                scheduler.add_engine(lost, 2 * LONGEST)
        assert scheduler.running == len(where)
        for engine in set(where.values()):
            held = [rollout for rollout in where if where[rollout] == engine]
            assert len(held) == 1 or sum(tokens[rollout] for rollout in held) <= 2 * LONGEST
        if len(ended) == len(finals):
            break
    assert sorted(ended) == sorted(finals)
    assert scheduler.running == scheduler.queued == 0
