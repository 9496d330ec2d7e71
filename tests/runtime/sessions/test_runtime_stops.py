"""A call that was late is told as late, with what it had printed, whatever comes at the same time."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import pytest

from runtime.profile import BoxUsage
from runtime.sandbox import CallResult, CallStatus, Session, Tier
from runtime.sessions import Sessions
from runtime.sessions.outcomes import LossCause
from runtime.sessions.session_queue import SessionRequest
from runtime.sessions.worker import Worker

SAID = "print('said')\n"
SPIN = f"{SAID}while True: pass"
MOST_SECONDS = 120.0


def until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + MOST_SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def worker_of(session: Session) -> Worker:
    port = session._placement._port  # type: ignore[attr-defined]
    assert port is not None
    found: Worker = port.worker
    return found


def under_way(worker: Worker) -> SessionRequest:
    until(lambda: worker._under_way)
    return next(iter(worker._under_way.values()))


@pytest.mark.parametrize("tier", [Tier.PROCESS, Tier.SANDBOX])
def test_an_answer_that_lies_there_when_the_time_is_over_is_late_and_the_next_call_works(
    pool: Sessions, tier: Tier
) -> None:
    with pool.open(tier=tier) as session:
        session.run("x = 1")
        worker, reactor = worker_of(session), pool._reactor
        future: list[Future[CallResult]] = []

        def answered_and_late() -> None:
            """Nobody reads the answer before the clock is looked at."""
            future.append(session.start(f"{SAID}x = 2", seconds=0.5))
            reactor.call(late)

        def late() -> None:
            time.sleep(1.0)
            worker._check_deadlines()

        reactor.result(answered_and_late)
        ended = future[0].result()
        assert (ended.status, ended.output) == (CallStatus.TIMEOUT, "said\n")
        after = session.run("print('x' in globals() and x)")
        assert (after.status, after.output) == (CallStatus.OK, "1\n" if tier is Tier.PROCESS else "False\n")


def test_what_was_printed_is_told_also_where_the_limit_is_shorter_than_a_slice(pool: Sessions) -> None:
    with pool.open(tier=Tier.SHARED) as session:
        session.run("x = 1")
        ended = session.run(f"x = 2\n{SPIN}", seconds=0.1)
        assert (ended.status, ended.output, ended.tier) == (CallStatus.TIMEOUT, "said\n", Tier.SHARED)
        assert ended.seconds < 60
        assert session.run("print(x)").output == "1\n"


def test_what_was_printed_is_told_of_a_sandbox_whose_patience_ends(pool: Sessions) -> None:
    with pool.sandbox() as sandbox:
        ended = sandbox.run(SPIN, seconds=1.0, patience=30.0)
        assert (ended.status, ended.output) == (CallStatus.TIMEOUT, "said\n")


@pytest.mark.parametrize("why", [LossCause.DIED, LossCause.MEMORY])
def test_a_sandbox_that_ends_before_it_has_said_what_was_printed_was_late_all_the_same(
    pool: Sessions, why: LossCause
) -> None:
    with pool.open(tier=Tier.SANDBOX) as session:
        session.run("x = 1")
        worker, future = worker_of(session), session.start(SPIN, seconds=60.0)
        call = under_way(worker)
        pool._reactor.result(lambda: (worker._stop(call), worker.lose(why)))
        assert future.result().status is CallStatus.TIMEOUT
        assert session.run("print(6 * 7)").output == "42\n"


def test_a_look_that_comes_back_when_the_call_was_stopped_changes_nothing(pool: Sessions) -> None:
    with pool.open(tier=Tier.SANDBOX) as session:
        session.run("x = 1")
        worker, held = worker_of(session), []

        class Slow:
            """The broker of this worker, which takes long to say what a sandbox has used."""

            def __init__(self, launcher: Any) -> None:
                self._launcher = launcher

            def usage(self, _handle: Any, done: Callable[[BoxUsage], None], **_: Any) -> None:
                held.append(done)

            def __getattr__(self, name: str) -> Any:
                return getattr(self._launcher, name)

        worker._launcher = Slow(worker._launcher)  # type: ignore[assignment]
        future = session.start(SPIN, seconds=1.0, patience=1_000.0)
        call = under_way(worker)
        until(lambda: held)

        def both() -> tuple[float, float]:
            worker._stop(call)
            stopped = call.deadline
            held[0](BoxUsage(cpu_seconds=0.0, waits={1: 500.0}))
            return stopped, call.deadline

        before, after = pool._reactor.result(both)
        assert before == after
        ended = future.result()
        assert (ended.status, ended.output) == (CallStatus.TIMEOUT, "said\n")
