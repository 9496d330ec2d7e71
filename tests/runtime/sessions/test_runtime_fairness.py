"""Who asks for much waits for himself: calls and places are given in turns, by priority, and so many may wait."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, wait
from contextlib import ExitStack
from pathlib import Path

import pytest

from runtime.errors import BadRequestError, BusyError
from runtime.sandbox import CallResult, CallStatus, Limits, Priority, Tier
from runtime.sessions import Sessions
from runtime.settings import BrokerSettings, RuntimeSettings

WORK = "n = 0\nwhile n < 300000: n += 1"
"""A few hundredths of a second, pure."""


@pytest.fixture(scope="module")
def narrow(root_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sessions]:
    """One place of each kind, and three that may wait."""
    settings = RuntimeSettings(
        own=BrokerSettings(state_dir=tmp_path_factory.mktemp("state"), root_dir=root_dir, ready=1),
        limits=Limits(call_seconds=120.0, memory_mib=128, calls=5_000),
        slice_seconds=2.0,
        shared_workers=1,
        process_boxes=1,
        process_sessions=1,
        sandboxes=1,
        waiting=3,
    )
    with Sessions(settings) as sessions:
        yield sessions


def served(pool: Sessions) -> None:
    """Waits until all that was asked before has come to the reactor: a busy one takes it a moment later."""
    came = Future[None]()
    pool._reactor.call(lambda: came.set_result(None))
    came.result(timeout=120)


class Answered:
    """The names of calls in the order in which they were answered, each watched from its start."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self._futures: list[Future[CallResult]] = []

    def watch(self, name: str, future: Future[CallResult]) -> None:
        self._futures.append(future)
        future.add_done_callback(lambda _future: self.seen.append(name))

    def order(self) -> list[str]:
        assert not wait(self._futures, timeout=240).not_done
        return self.seen


def test_a_flood_of_one_session_delays_the_others_by_a_call_or_two(narrow: Sessions) -> None:
    with narrow.open() as flood, narrow.open() as quiet:
        flood.run("1")
        quiet.run("1")
        many = [flood.start(WORK) for _ in range(200)]

        def answered() -> int:
            return sum(future.done() for future in many)

        before, then, go_on = Future[int](), Future[int](), threading.Event()
        narrow._reactor.call(lambda: (before.set_result(answered()), go_on.wait(120)))  # nobody is served meanwhile
        asked = quiet.start("print(1)")
        asked.add_done_callback(lambda _future: then.set_result(answered()))
        go_on.set()
        assert asked.result(timeout=120).status is CallStatus.OK
        assert then.result(timeout=120) < min(len(many), before.result() + 10)
        flood.close()
        assert isinstance(many[-1].exception(timeout=120), BadRequestError)


def test_many_sessions_with_many_calls_wait_alike(narrow: Sessions) -> None:
    sessions = [narrow.open(caller=f"rollout {n}") for n in range(60)]

    def spread() -> float:
        """The longest wait by the mean one; a machine that stands still for a moment makes it larger."""
        started = time.monotonic()
        waits: list[float] = []
        futures = [session.start(f"print({n})") for session in sessions for n in range(30)]
        for future in futures:
            future.add_done_callback(lambda _future: waits.append(time.monotonic() - started))
        assert not wait(futures, timeout=120).not_done
        assert all(future.result().status is CallStatus.OK for future in futures)
        return max(waits) / (sum(waits) / len(waits))

    assert any(spread() < 3 for _ in range(4))
    for session in sessions:
        session.close()


def test_calls_of_a_job_go_before_those_of_training(narrow: Sessions) -> None:
    training = [narrow.open(caller=f"t{n}") for n in range(50)]
    job = narrow.open(caller="job", priority=Priority.JOB)
    job.run("1")
    answered = Answered()
    go_on = threading.Event()
    narrow._reactor.call(lambda: go_on.wait(120) and None)  # so that all have asked before anybody is served
    for n, session in enumerate(training):
        answered.watch(f"t{n}", session.start(WORK))
    answered.watch("job", job.start("print(1)"))
    go_on.set()
    assert answered.order().index("job") < 25
    for session in [*training, job]:
        session.close()


@pytest.mark.parametrize("tier", [Tier.PROCESS, Tier.SANDBOX])
def test_places_go_to_jobs_first_and_then_to_callers_in_turn(narrow: Sessions, tier: Tier) -> None:
    holder = narrow.open(tier=tier)
    holder.run("1")
    sessions = {
        "a1": narrow.open(tier=tier, caller="a"),
        "a2": narrow.open(tier=tier, caller="a"),
        "job": narrow.open(tier=tier, caller="a", priority=Priority.JOB),
    }
    answered = Answered()
    for name, session in sessions.items():
        future = session.start("print(1)")
        answered.watch(name, future)
        future.add_done_callback(lambda _future, session=session: session.close())
    holder.close()
    assert answered.order() == ["job", "a1", "a2"]


@pytest.mark.parametrize("tier", [Tier.PROCESS, Tier.SANDBOX])
def test_one_more_than_may_wait_is_told_so_and_one_who_leaves_makes_room(narrow: Sessions, tier: Tier) -> None:
    with ExitStack() as opened:
        holder, late, *waiting = [opened.enter_context(narrow.open(tier=tier)) for _ in range(5)]
        holder.run("1")
        futures = [session.start("print(1)") for session in waiting]
        served(narrow)
        with pytest.raises(BusyError):
            narrow.open()
        with pytest.raises(BusyError):
            late.run("print(1)")
        assert narrow.stats()["waiting"] == 3
        waiting.pop().close()
        served(narrow)
        again = late.start("print(2)")
        for session, future in zip([holder, *waiting], [*futures[:2], again], strict=True):
            session.close()
            assert future.result(timeout=120).status is CallStatus.OK
    served(narrow)
    assert narrow.stats()["waiting"] == 0


@pytest.mark.parametrize("tier", [Tier.PROCESS, Tier.SANDBOX])
def test_closing_in_the_middle_of_a_call_frees_the_place_at_once(narrow: Sessions, tier: Tier) -> None:
    holder, next_one = narrow.open(tier=tier), narrow.open(tier=tier)
    holder.run("1")
    call = holder.start("import time\nwhile True: pass", seconds=600)
    waiting = next_one.start("print(1)")
    time.sleep(0.3)
    holder.close()
    assert isinstance(call.exception(timeout=120), BadRequestError)
    assert waiting.result(timeout=120).status is CallStatus.OK
    next_one.close()


def test_closing_among_others_frees_the_interpreter_after_a_slice(narrow: Sessions) -> None:
    def waited() -> float:
        session = narrow.open()
        session.run("1")
        calls = [session.start("n = 0\nwhile True: n += 1") for _ in range(5)]
        started = time.monotonic()
        session.close()
        assert neighbour.run("print(1)").status is CallStatus.OK
        took = time.monotonic() - started
        assert all(isinstance(call.exception(timeout=120), BadRequestError) for call in calls)
        return took

    with narrow.open() as neighbour:
        neighbour.run("1")
        assert any(waited() < 2 * narrow.settings.slice_seconds for _ in range(10))


def test_a_session_that_is_closed_before_its_place_comes_takes_none(narrow: Sessions) -> None:
    for tier in (Tier.PROCESS, Tier.SANDBOX):
        for _ in range(5):
            session = narrow.open(tier=tier)
            future = session.start("print(1)")
            session.close()
            assert isinstance(future.exception(timeout=120), BadRequestError)
        with narrow.open(tier=tier) as session:
            assert session.run("print(2)").output == "2\n"


def test_a_call_that_was_cancelled_before_its_turn_does_not_run(narrow: Sessions) -> None:
    with narrow.open() as session:
        session.run("seen = []")
        session.start(WORK)
        unwanted = session.start("seen.append(1)")
        assert unwanted.cancel()
        assert session.run("print(seen)").output == "[]\n"
