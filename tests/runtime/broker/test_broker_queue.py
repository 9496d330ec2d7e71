"""Whatever is added, cancelled, started and served, in whatever order: nobody is lost, nobody is passed over."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, precondition, rule
from property_budget import examples

from runtime.broker.queue import Queue, QueuePosition
from runtime.errors import BusyError
from runtime.sandbox import Priority

KEYS, CALLERS, PRIORITIES = st.sampled_from("xyz"), st.sampled_from("abc"), st.sampled_from(Priority)


@dataclass(eq=False)
class Asked:
    number: int
    key: str
    caller: str
    priority: Priority
    turns: list[str] = field(default_factory=list)
    """Callers who were served since it came, of its key and priority."""


class AnyOrder(RuleBasedStateMachine):
    places = Bundle("places")

    def __init__(self) -> None:
        super().__init__()
        self.queue: Queue[str, Asked] = Queue(1_000)
        self.waiting: list[Asked] = []
        self.starting: list[str] = []
        self.blocked: set[str] = set()
        self.numbers = 0

    @rule(target=places, key=KEYS, caller=CALLERS, priority=PRIORITIES)
    def add(self, key: str, caller: str, priority: Priority) -> tuple[Asked, QueuePosition[str]]:
        asked = Asked(self.numbers, key, caller, priority)
        self.numbers += 1
        self.waiting.append(asked)
        return asked, self.queue.add(asked, key, caller=caller, priority=priority)

    @rule(position=consumes(places))
    def cancel(self, position: tuple[Asked, QueuePosition[str]]) -> None:
        asked, where = position
        assert self.queue.cancel(where) == (asked in self.waiting)
        assert not self.queue.cancel(where)
        if asked in self.waiting:
            self.waiting.remove(asked)

    @rule(key=KEYS)
    def block_or_not(self, key: str) -> None:
        self.blocked ^= {key}

    @rule()
    def start_what_is_next(self) -> None:
        key = self.queue.next_start(self.blocked.__contains__)
        uncovered = {
            asked.key
            for asked in self.waiting
            if self.starting.count(asked.key) < sum(other.key == asked.key for other in self.waiting)
        } - self.blocked
        if key is None:
            assert uncovered == set()
        else:
            assert key in uncovered
            self.queue.started(key)
            self.starting.append(key)

    @rule(key=KEYS)
    def start_ahead_of_need(self, key: str) -> None:
        self.queue.started(key)
        self.starting.append(key)

    @precondition(lambda self: self.starting)
    @rule(data=st.data())
    def one_start_is_over(self, data: st.DataObject) -> None:
        key = self.starting.pop(data.draw(st.integers(0, len(self.starting) - 1)))
        self.queue.finished(key)
        self.serve(key)

    @rule(key=KEYS)
    def serve(self, key: str) -> None:
        served = self.queue.serve(key)
        of_key = [asked for asked in self.waiting if asked.key == key]
        if served is None:
            assert of_key == []
            return
        self.waiting.remove(served)
        rivals = [asked for asked in of_key if asked.priority == served.priority]
        assert served.priority == min(asked.priority for asked in of_key)
        assert all(asked.number >= served.number for asked in rivals if asked.caller == served.caller)
        for asked in rivals:
            if asked.caller != served.caller and served.caller in asked.turns:
                since = asked.turns[::-1].index(served.caller)
                assert asked.caller in asked.turns[len(asked.turns) - since :], "two turns while another one waited"
            asked.turns.append(served.caller)

    @invariant()
    def all_are_counted(self) -> None:
        assert len(self.queue) == len(self.waiting)
        for key in "xyz":
            assert self.queue.waits_for(key) == sum(asked.key == key for asked in self.waiting)
            assert self.queue.starting(key) == self.starting.count(key)


TestAnyOrder = AnyOrder.TestCase
TestAnyOrder.settings = settings(max_examples=examples(40), stateful_step_count=60, deadline=None)


@given(st.lists(st.tuples(KEYS, CALLERS, PRIORITIES), max_size=40), st.randoms())
def test_with_enough_starts_everybody_is_served_once(wishes: list[tuple[str, str, Priority]], random: object) -> None:
    queue: Queue[str, int] = Queue(1_000)
    for number, (key, caller, priority) in enumerate(wishes):
        queue.add(number, key, caller=caller, priority=priority)
    served = []
    while (key := queue.next_start(lambda _key: False)) is not None:
        queue.started(key)
        queue.finished(key)
        item = queue.serve(key)
        assert item is not None
        served.append(item)
    assert sorted(served) == list(range(len(wishes)))


def test_a_priority_that_is_full_turns_away_its_own_only() -> None:
    queue: Queue[str, int] = Queue(2)
    for number in range(2):
        queue.add(number, "x", caller="flood", priority=Priority.TRAINING)
    with pytest.raises(BusyError):
        queue.add(2, "x", caller="flood", priority=Priority.TRAINING)
    position = queue.add(3, "x", caller="job", priority=Priority.JOB)
    assert queue.serve("x") == 3
    assert not queue.cancel(position)
    with pytest.raises(BusyError):
        queue.add(4, "x", caller="other", priority=Priority.TRAINING)


def test_a_start_that_failed_is_made_again_for_those_who_still_wait() -> None:
    queue: Queue[str, str] = Queue(10)
    queue.add("first", "x", caller="a", priority=Priority.TRAINING)
    queue.add("second", "x", caller="b", priority=Priority.TRAINING)
    queue.started("x")  # ahead of need: it covers the first of them
    assert queue.next_start(lambda _key: False) == "x"
    queue.started("x")
    assert queue.next_start(lambda _key: False) is None
    queue.finished("x")
    assert queue.next_start(lambda _key: False) == "x"


def test_a_flood_of_waiting_requests_is_cancelled_in_no_time() -> None:
    queue: Queue[str, int] = Queue(100_000)
    places = [queue.add(n, "x", caller=str(n % 50), priority=Priority.TRAINING) for n in range(20_000)]
    assert all(queue.cancel(position) for position in reversed(places))
    assert len(queue) == 0
    assert queue.next_start(lambda _key: False) is None
