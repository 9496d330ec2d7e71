"""What a worker replies is checked before it is believed, and one that sends nonsense harms nobody else's items."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from verifiers.answers.spec import AnswerSpec
from verifiers.boxes.frames import HEADER, encode
from verifiers.contract.verdict import Outcome
from verifiers.registry import decide, packages
from verifiers.workers import scheduler as scheduler_module
from verifiers.workers.batches import WaitingBatches, WorkBatch, WorkItem
from verifiers.workers.messages import CLOCK, INDEX, MessageKind, message_reader, pack
from verifiers.workers.scheduler import END_SECONDS, MAX_REQUEUES, WorkerScheduler, WorkersLost
from verifiers.workers.worker_process import OUT_OF_MEMORY

SPEC = AnswerSpec(notation="digits", expected="1")
PASSING = decide(SPEC, "1").model_dump(mode="json")


class Pipes:
    """A zygote whose messages the test chooses."""

    isolation = "process"

    def __init__(self) -> None:
        self.asked, requests = os.pipe2(os.O_NONBLOCK)
        replies, self.replies_in = os.pipe2(os.O_NONBLOCK)
        self.descriptors = requests, replies
        self._reader = message_reader()

    def out_of_memory(self) -> int:
        return 0

    def kill(self) -> str:
        return "it was ended"

    def given(self) -> list[tuple[int, int, list[list[str]]]]:
        """Worker, first index and items of each batch that was sent; the number of the kind for all else."""
        found = []
        for (_, number, kind), body in self._reader.feed(os.read(self.asked, 1 << 20)):
            if kind == MessageKind.ITEMS:
                batch = json.loads(body[CLOCK.size + HEADER.size :])
                found.append((number, batch["first"], batch["items"]))
            else:
                found.append((number, -kind, []))
        return found


@pytest.fixture
def pipes() -> Iterator[Pipes]:
    made = Pipes()
    yield made
    for descriptor in (made.asked, made.replies_in, *made.descriptors):
        os.close(descriptor)


def scheduler_with(pipes: Pipes, *answers: str) -> tuple[WorkerScheduler, WorkBatch]:
    waiting = WaitingBatches()
    batch = WorkBatch([(SPEC, answer) for answer in answers], 5.0)
    batch.waiting.extend(WorkItem(batch, place) for place in range(len(answers)))
    waiting.add(batch)
    scheduler = WorkerScheduler(pipes, 1, 100, waiting)
    step(scheduler)
    return scheduler, batch


def step(scheduler: WorkerScheduler) -> None:
    scheduler.assign()
    scheduler.flush()


def receive(scheduler: WorkerScheduler, pipes: Pipes, data: bytes) -> None:
    os.write(pipes.replies_in, data)
    scheduler.receive()
    step(scheduler)


def right(index: int, answer: str) -> bytes:
    verdict = decide(SPEC, answer).model_dump(mode="json")
    return encode({"index": index, "kind": "verdict", "verdict": verdict})


def load(scheduler: WorkerScheduler, pipes: Pipes, place: int) -> None:
    receive(scheduler, pipes, pack(0, MessageKind.LOADED, bytes([place])))


def ended(why: str, status: int, item: int, cpu: float = 0.0, took: float = 0.0) -> bytes:
    return json.dumps({"why": why, "status": status, "item": item, "cpu": cpu, "took": took}).encode()


def test_what_takes_long_gives_way_as_a_whole_unless_it_is_on_its_last_attempt(pipes: Pipes) -> None:
    scheduler, batch = scheduler_with(pipes, "1")
    assert not scheduler.may_give_way
    receive(scheduler, pipes, pack(1, MessageKind.SLOW, INDEX.pack(0)))
    assert scheduler.may_give_way
    receive(scheduler, pipes, pack(1, MessageKind.ENDED, ended("timeout", -9, 0, cpu=0.1, took=50.0)))
    assert list(batch.results) == []
    receive(scheduler, pipes, pack(2, MessageKind.SLOW, INDEX.pack(0)))
    assert not scheduler.may_give_way
    receive(scheduler, pipes, pack(2, MessageKind.REPLIES, right(0, "1")))
    assert batch.results[0].passed


def test_answers_settle_their_items_and_strange_indices_nothing(pipes: Pipes) -> None:
    scheduler, batch = scheduler_with(pipes, "1", "2")
    receive(
        scheduler,
        pipes,
        pack(1, MessageKind.REPLIES, right(7, "1") + right(0, "1")) + pack(9, MessageKind.REPLIES, right(1, "1")),
    )
    assert list(batch.results) == [0]
    receive(scheduler, pipes, pack(1, MessageKind.REPLIES, right(1, "2") + right(1, "1")))
    assert [batch.results[place].passed for place in (0, 1)] == [True, False]
    assert batch.done.is_set()
    assert {verdict.isolation for verdict in batch.results.values()} == {"process"}


NONSENSE = {
    "no frame": b"\xff\xff\xff\xff",
    "no JSON": HEADER.pack(2) + b"{]",
    "a list": encode([1]),
    "no kind": encode({"index": 0}),
    "a verdict that is none": encode({"index": 0, "kind": "verdict", "verdict": {"outcome": "pass"}}),
    "out of memory before it began": encode({"index": 0, "kind": "memory", "seconds": -1}),
    "out of memory at no time": encode({"index": 0, "kind": "memory"}),
    "more than one": encode({"index": 0, "kind": "verdict", "verdict": {**PASSING, "score": 7}}),
    "a tower of brackets": HEADER.pack(200_000) + b"[" * 200_000,
}  # fmt: skip


@pytest.mark.parametrize("what", NONSENSE)
def test_a_worker_that_sends_nonsense_is_ended_and_its_items_are_decided_by_others(pipes: Pipes, what: str) -> None:
    scheduler, batch = scheduler_with(pipes, "1", "1")
    assert len(pipes.given()) == 1
    for data in (NONSENSE[what][start : start + 50_000] for start in range(0, len(NONSENSE[what]), 50_000)):
        receive(scheduler, pipes, pack(1, MessageKind.REPLIES, data))
    assert not batch.results
    assert pipes.given() == [(1, -MessageKind.KILL, [])]
    receive(scheduler, pipes, pack(1, MessageKind.ENDED, ended("asked", -9, -1)))
    given = pipes.given()
    assert sorted(len(items) for _, _, items in given) == [1, 1]
    for worker, first, _ in given:
        receive(scheduler, pipes, pack(worker, MessageKind.REPLIES, right(first, "1")))
    assert batch.done.is_set()
    assert all(verdict.passed for verdict in batch.results.values())


def test_an_item_that_is_lost_with_others_again_and_again_is_our_failure(pipes: Pipes) -> None:
    scheduler, batch = scheduler_with(pipes, "1")
    for _ in range(MAX_REQUEUES + 1):
        ((worker, _, _),) = pipes.given()
        receive(scheduler, pipes, pack(worker, MessageKind.ENDED, ended("died", 1, -1)))
    assert batch.results[0].outcome is Outcome.INFRA_ERROR
    assert "exit code 1" in batch.results[0].reason


def test_nothing_that_needs_a_package_is_given_before_it_is_loaded_and_old_workers_end(pipes: Pipes) -> None:
    scheduler, _ = scheduler_with(pipes, "1")
    assert pipes.given() == [(1, 0, [[SPEC.model_dump_json(), "1"]])]
    late = WorkBatch([(AnswerSpec(expected="1/2"), "0.5")], 5.0)
    late.waiting.append(WorkItem(late, 0))
    scheduler._waiting.add(late)
    step(scheduler)
    assert pipes.given() == [(0, -MessageKind.LOAD, [])]
    receive(scheduler, pipes, pack(1, MessageKind.REPLIES, right(0, "1")))
    assert pipes.given() == [(1, -MessageKind.KILL, [])]  # it has not got what was loaded since
    load(scheduler, pipes, packages().index("verifiers.answers"))
    ((worker, first, items),) = pipes.given()
    assert (worker, first, len(items)) == (2, 0, 1)


def test_a_package_that_nobody_asked_for_is_not_loaded(pipes: Pipes) -> None:
    scheduler, _ = scheduler_with(pipes, "1")
    for body in (b"\xff", b"\0", b""):
        os.write(pipes.replies_in, pack(0, MessageKind.LOADED, body))
        with pytest.raises(WorkersLost, match="protocol"):
            scheduler.receive()


def test_a_time_out_is_its_own_only_if_it_computed(pipes: Pipes) -> None:
    for cpu, outcome in ((5.0, Outcome.FAIL), (4.9, None), (0.1, None)):
        scheduler, batch = scheduler_with(pipes, "1")
        worker = pipes.given()[-1][0]
        receive(scheduler, pipes, pack(worker, MessageKind.ENDED, ended("timeout", -9, 0, cpu)))
        assert (batch.results[0].outcome if batch.results else None) is outcome
        if outcome is None:
            ((again, _, _),) = pipes.given()
            receive(scheduler, pipes, pack(again, MessageKind.ENDED, ended("timeout", -9, 0, cpu)))
            assert batch.results[0].outcome is Outcome.INFRA_ERROR


def test_a_verdict_on_what_took_too_much_says_how_long_it_took(pipes: Pipes) -> None:
    """And not how long it might have taken."""
    endings = {
        "out of time": pack(1, MessageKind.ENDED, ended("timeout", -9, 0, cpu=5.0, took=5.125)),
        "killed for its memory": pack(1, MessageKind.ENDED, ended("died", OUT_OF_MEMORY, 0, took=0.25)),
        "out of memory": pack(1, MessageKind.REPLIES, encode({"index": 0, "kind": "memory", "seconds": 0.5})),
        "too deep": pack(1, MessageKind.REPLIES, encode({"index": 0, "kind": "recursion", "seconds": 0.75})),
    }
    took = {}
    for what, message in endings.items():
        scheduler, batch = scheduler_with(pipes, "1")
        receive(scheduler, pipes, message)
        assert batch.results[0].outcome is Outcome.FAIL
        took[what] = batch.results[0].seconds
    assert took == {"out of time": 5.125, "killed for its memory": 0.25, "out of memory": 0.5, "too deep": 0.75}


def test_a_zygote_that_gets_its_turn_late_is_not_lost_with_all_that_its_workers_were_given(
    pipes: Pipes, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr(scheduler_module, "time", SimpleNamespace(monotonic=lambda: now[0]))
    scheduler, batch = scheduler_with(pipes, "1")
    pipes.given()
    now[0] = scheduler.deadline + 0.1
    scheduler.watch()
    scheduler.flush()
    assert pipes.given() == [(1, -MessageKind.KILL, [])]
    now[0] += END_SECONDS - 1
    scheduler.watch()
    receive(scheduler, pipes, pack(1, MessageKind.ENDED, ended("asked", -9, 0)))
    receive(scheduler, pipes, pack(2, MessageKind.REPLIES, right(0, "1")))
    assert batch.results[0].passed
    now[0] += 10 * END_SECONDS
    scheduler.watch()


def test_a_zygote_that_ends_nothing_is_lost(pipes: Pipes, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(scheduler_module, "time", SimpleNamespace(monotonic=lambda: now[0]))
    scheduler, _ = scheduler_with(pipes, "1")
    now[0] = scheduler.deadline + 0.1
    scheduler.watch()
    now[0] += END_SECONDS + 0.1
    with pytest.raises(WorkersLost, match="did not kill a worker in time"):
        scheduler.watch()
