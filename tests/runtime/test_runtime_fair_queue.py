"""Turns are fair whatever is added, taken and removed in whatever order."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.fair_queue import FairQueue, QueueEntry
from runtime.sandbox import Priority

CALLERS = st.sampled_from("abcd")
PRIORITIES = st.sampled_from(Priority)
ADD = st.tuples(st.just("add"), CALLERS, PRIORITIES)
STEPS = st.lists(st.one_of(ADD, st.just(("take",)), st.tuples(st.just("remove"), st.integers(0, 50))), max_size=80)


@given(STEPS)
def test_everything_comes_once_in_order_and_the_highest_priority_first(steps: list[tuple[object, ...]]) -> None:
    turns: FairQueue[int] = FairQueue()
    waiting: dict[int, QueueEntry] = {}
    added: list[QueueEntry] = []
    for step in steps:
        match step:
            case ("add", str(caller), Priority() as priority):
                number = len(added)
                added.append(turns.add(number, caller=caller, priority=priority))
                waiting[number] = added[number]
            case ("remove", int(number)) if number < len(added):
                assert turns.remove(added[number]) == (waiting.pop(number, None) is not None)
            case ("take",) if waiting:
                taken = waiting.pop(number := turns.take())
                assert taken.priority == min(entry.priority for entry in [taken, *waiting.values()])
                assert all(other > number for other, entry in waiting.items() if entry[:2] == taken[:2])
            case ("take",):
                with pytest.raises(IndexError):
                    turns.take()
            case _:
                pass
        assert len(turns) == len(waiting)


@given(st.lists(st.tuples(CALLERS, PRIORITIES), min_size=1, max_size=60), st.data())
def test_between_two_turns_of_one_caller_everybody_else_has_one(
    first: list[tuple[str, Priority]], data: st.DataObject
) -> None:
    turns: FairQueue[tuple[str, Priority]] = FairQueue()
    for caller, priority in first:
        turns.add((caller, priority), caller=caller, priority=priority)
    waiting_since: dict[tuple[str, Priority], list[tuple[str, Priority]]] = {key: [] for key in first}
    left = list(first)
    while left:
        if data.draw(st.booleans()) and len(left) < 80 and data.draw(st.booleans()):
            key = (data.draw(CALLERS), data.draw(PRIORITIES))
            turns.add(key, caller=key[0], priority=key[1])
            left.append(key)
            waiting_since.setdefault(key, [])
        taken = turns.take()
        left.remove(taken)
        for key, turns_of_others in waiting_since.items():
            if key != taken and key[1] == taken[1]:
                assert taken not in turns_of_others, "two turns while another one waited"
                turns_of_others.append(taken)
        waiting_since[taken] = []
        if taken not in left:
            del waiting_since[taken]


def test_one_who_floods_does_not_delay_the_others() -> None:
    turns: FairQueue[str] = FairQueue()
    for _ in range(1_000):
        turns.add("flood", caller="flood")
    turns.add("late", caller="late")
    assert "late" in {turns.take(), turns.take()}


def test_many_callers_with_much_to_do_wait_alike() -> None:
    """45,000 calls of 500 callers, added in the worst order, each taking one unit of time."""
    turns: FairQueue[int] = FairQueue()
    for caller in range(500):
        for _ in range(90):
            turns.add(caller, caller=str(caller))
    last = {}
    for moment in range(45_000):
        last[turns.take()] = moment
    assert max(last.values()) - min(last.values()) < 500
