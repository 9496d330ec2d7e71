"""What a hand says is looked at before it is believed, and a hand that talks nonsense harms nobody else's items."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator

import pytest

from verifiers.registry import DECIDE, decide
from verifiers.spec import AnswerSpec, IntegerSpec
from verifiers.verdict import Outcome
from verifiers.workers.crew import PASSED_ON, Crew, CrewLost
from verifiers.workers.frames import HEADER, encode
from verifiers.workers.hand import OUT_OF_MEMORY
from verifiers.workers.jobs import Item, Job, Waiting
from verifiers.workers.lines import CLOCK, Kind, Lines, pack

SPEC = IntegerSpec(expected="1")
PASSING = decide(SPEC, "1").model_dump(mode="json")


class Pipes:
    """A zygote whose words the test chooses."""

    isolation = "process"

    def __init__(self) -> None:
        self.asked, requests = os.pipe2(os.O_NONBLOCK)
        replies, self.says = os.pipe2(os.O_NONBLOCK)
        self.descriptors = requests, replies
        self._lines = Lines()

    def out_of_memory(self) -> int:
        return 0

    def kill(self) -> str:
        return "it was ended"

    def given(self) -> list[tuple[int, int, list[list[str]]]]:
        """Hand, first index and items of each batch that was sent; the number of the kind for all else."""
        found = []
        for line in self._lines.feed(os.read(self.asked, 1 << 20)):
            if line.kind == Kind.ITEMS:
                batch = json.loads(line.body[CLOCK.size + HEADER.size :])
                found.append((line.hand, batch["first"], batch["items"]))
            else:
                found.append((line.hand, -line.kind, []))
        return found


@pytest.fixture
def pipes() -> Iterator[Pipes]:
    made = Pipes()
    yield made
    for descriptor in (made.asked, made.says, *made.descriptors):
        os.close(descriptor)


def crew_with(pipes: Pipes, *answers: str) -> tuple[Crew, Job]:
    waiting = Waiting()
    job = Job([(SPEC, answer) for answer in answers], 5.0)
    job.waiting.extend(Item(job, place) for place in range(len(answers)))
    waiting.add(job)
    crew = Crew(pipes, 1, 100, waiting)
    step(crew)
    return crew, job


def step(crew: Crew) -> None:
    crew.assign()
    crew.flush()


def hear(crew: Crew, pipes: Pipes, data: bytes) -> None:
    os.write(pipes.says, data)
    crew.hear()
    step(crew)


def right(index: int, answer: str) -> bytes:
    verdict = decide(SPEC, answer).model_dump(mode="json")
    return encode({"index": index, "kind": "verdict", "verdict": verdict})


def load(crew: Crew, pipes: Pipes, place: int) -> None:
    hear(crew, pipes, pack(0, Kind.LOADED, bytes([place])))


def ended(why: str, status: int, item: int, cpu: float = 0.0, took: float = 0.0) -> bytes:
    return json.dumps({"why": why, "status": status, "item": item, "cpu": cpu, "took": took}).encode()


def test_answers_settle_their_items_and_strange_indices_nothing(pipes: Pipes) -> None:
    crew, job = crew_with(pipes, "1", "2")
    hear(crew, pipes, pack(1, Kind.SAID, right(7, "1") + right(0, "1")) + pack(9, Kind.SAID, right(1, "1")))
    assert list(job.verdicts) == [0]
    hear(crew, pipes, pack(1, Kind.SAID, right(1, "2") + right(1, "1")))
    assert [job.verdicts[place].passed for place in (0, 1)] == [True, False]
    assert job.done.is_set()
    assert {verdict.isolation for verdict in job.verdicts.values()} == {"process"}


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
def test_a_hand_that_talks_nonsense_is_ended_and_its_items_are_judged_by_others(pipes: Pipes, what: str) -> None:
    crew, job = crew_with(pipes, "1", "1")
    assert len(pipes.given()) == 1
    for data in (NONSENSE[what][start : start + 50_000] for start in range(0, len(NONSENSE[what]), 50_000)):
        hear(crew, pipes, pack(1, Kind.SAID, data))
    assert not job.verdicts
    assert pipes.given() == [(1, -Kind.KILL, [])]
    hear(crew, pipes, pack(1, Kind.ENDED, ended("asked", -9, -1)))
    given = pipes.given()
    assert sorted(len(items) for _, _, items in given) == [1, 1]
    for hand, first, _ in given:
        hear(crew, pipes, pack(hand, Kind.SAID, right(first, "1")))
    assert job.done.is_set()
    assert all(verdict.passed for verdict in job.verdicts.values())


def test_an_item_that_is_lost_with_others_again_and_again_is_our_failure(pipes: Pipes) -> None:
    crew, job = crew_with(pipes, "1")
    for _ in range(PASSED_ON + 1):
        ((hand, _, _),) = pipes.given()
        hear(crew, pipes, pack(hand, Kind.ENDED, ended("died", 1, -1)))
    assert job.verdicts[0].outcome is Outcome.INFRA_ERROR
    assert "exit code 1" in job.verdicts[0].reason


def test_nothing_that_needs_a_package_is_given_before_it_is_loaded_and_old_hands_end(pipes: Pipes) -> None:
    crew, _ = crew_with(pipes, "1")
    assert pipes.given() == [(1, 0, [[SPEC.model_dump_json(), "1"]])]
    late = Job([(AnswerSpec(expected="1/2"), "0.5")], 5.0)
    late.waiting.append(Item(late, 0))
    crew._waiting.add(late)
    step(crew)
    assert pipes.given() == [(0, -Kind.LOAD, [])]
    hear(crew, pipes, pack(1, Kind.SAID, right(0, "1")))
    assert pipes.given() == [(1, -Kind.KILL, [])]  # it has not got what was loaded since
    load(crew, pipes, DECIDE.index("verifiers.answers"))
    ((hand, first, items),) = pipes.given()
    assert (hand, first, len(items)) == (2, 0, 1)


def test_a_package_that_nobody_asked_for_is_not_loaded(pipes: Pipes) -> None:
    crew, _ = crew_with(pipes, "1")
    for body in (b"\xff", b"\0", b""):
        os.write(pipes.says, pack(0, Kind.LOADED, body))
        with pytest.raises(CrewLost, match="protocol"):
            crew.hear()


def test_a_time_out_is_its_own_only_if_it_computed(pipes: Pipes) -> None:
    for cpu, outcome in ((4.0, Outcome.FAIL), (0.1, None)):
        crew, job = crew_with(pipes, "1")
        hand = pipes.given()[-1][0]
        hear(crew, pipes, pack(hand, Kind.ENDED, ended("timeout", -9, 0, cpu)))
        assert (job.verdicts[0].outcome if job.verdicts else None) is outcome
        if outcome is None:
            ((again, _, _),) = pipes.given()
            hear(crew, pipes, pack(again, Kind.ENDED, ended("timeout", -9, 0, cpu)))
            assert job.verdicts[0].outcome is Outcome.INFRA_ERROR


def test_a_verdict_on_what_took_too_much_says_how_long_it_took(pipes: Pipes) -> None:
    """And not how long it might have taken."""
    endings = {
        "out of time": pack(1, Kind.ENDED, ended("timeout", -9, 0, cpu=4.0, took=5.125)),
        "killed for its memory": pack(1, Kind.ENDED, ended("died", OUT_OF_MEMORY, 0, took=0.25)),
        "out of memory": pack(1, Kind.SAID, encode({"index": 0, "kind": "memory", "seconds": 0.5})),
        "too deep": pack(1, Kind.SAID, encode({"index": 0, "kind": "recursion", "seconds": 0.75})),
    }
    took = {}
    for what, said in endings.items():
        crew, job = crew_with(pipes, "1")
        hear(crew, pipes, said)
        assert job.verdicts[0].outcome is Outcome.FAIL
        took[what] = job.verdicts[0].seconds
    assert took == {"out of time": 5.125, "killed for its memory": 0.25, "out of memory": 0.5, "too deep": 0.75}
