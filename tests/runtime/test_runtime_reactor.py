"""The reactor runs what it is given in order, whatever one callback does, and nobody waits for one that has ended."""

from __future__ import annotations

import signal
import sys
import threading
import time
from concurrent.futures import Future
from functools import partial

from runtime.reactor import Reactor


def test_a_callback_that_fails_does_not_stop_those_after_it() -> None:
    reactor, seen = Reactor(), Future[list[int]]()
    order: list[int] = []

    def fails() -> None:
        order.append(1)
        raise KeyError("one session's trouble")

    reactor.call(fails)
    reactor.call(lambda: order.append(2))
    reactor.call(lambda: seen.set_result(order))
    assert seen.result(timeout=120) == [1, 2]
    reactor.stop()


def test_a_cancelled_timer_is_not_heard_and_the_others_come_in_order() -> None:
    reactor, order, done = Reactor(), list[str](), Future[None]()

    def begin() -> None:
        reactor.after(0.2, lambda: order.append("second"))
        reactor.after(0.01, lambda: order.append("first"))
        reactor.after(0.1, lambda: order.append("cancelled")).cancel()
        reactor.after(0.25, lambda: done.set_result(None))

    reactor.call(begin)
    done.result(timeout=120)
    assert order == ["first", "second"]
    reactor.stop()


def test_a_cancelled_timer_lets_go_of_what_it_would_have_called_at_once() -> None:
    reactor = Reactor()
    try:
        waiting = Exception("due in an hour")
        timer = reactor.after(3600, waiting.with_traceback)  # type: ignore[arg-type]
        held = sys.getrefcount(waiting)
        timer.cancel()
        assert sys.getrefcount(waiting) < held
    finally:
        reactor.stop()


def test_what_comes_after_the_end_is_run_at_once() -> None:
    reactor, late = Reactor(), Future[str]()
    reactor.stop()
    reactor.call(lambda: late.set_result("done"))
    assert late.result(timeout=0) == "done"


def test_here_runs_at_once_on_the_callers_thread_unless_something_else_does() -> None:
    reactor = Reactor()
    deadline = time.monotonic() + 120
    ran: list[int] = []
    while ran[-1:] != [threading.get_ident()]:  # its thread may have something in hand at first
        assert time.monotonic() < deadline
        time.sleep(0.01)
        reactor.here(lambda: ran.append(threading.get_ident()))
    held, go_on, later = Future[None](), threading.Event(), Future[int]()

    def holds() -> None:
        held.set_result(None)
        go_on.wait(timeout=120)

    reactor.call(holds)
    held.result(timeout=120)
    reactor.here(lambda: later.set_result(threading.get_ident()))
    assert not later.done()
    go_on.set()
    assert later.result(timeout=120) != threading.get_ident()
    reactor.stop()


def test_callbacks_from_many_threads_never_overlap_and_keep_the_order_of_each() -> None:
    reactor = Reactor()
    inside, seen, done = 0, list[tuple[int, int]](), Future[None]()

    def step(thread: int, number: int) -> None:
        nonlocal inside
        inside += 1
        assert inside == 1
        seen.append((thread, number))
        if len(seen) == 4_000:
            done.set_result(None)
        inside -= 1

    def work(thread: int) -> None:
        for number in range(1_000):
            (reactor.here if number % 3 else reactor.call)(partial(step, thread, number))

    threads = [threading.Thread(target=work, args=(thread,)) for thread in range(4)]
    for thread in threads:
        thread.start()
    done.result(timeout=120)
    for thread in threads:
        thread.join()
        assert [number for mine, number in seen if mine == threads.index(thread)] == list(range(1_000))
    reactor.stop()


def test_a_timer_set_from_another_thread_is_heard_in_time() -> None:
    reactor, reached = Reactor(), Future[float]()
    started = time.monotonic()
    reactor.here(lambda: reactor.after(60, lambda: None) and None)
    time.sleep(0.05)
    reactor.here(lambda: reactor.after(0.05, lambda: reached.set_result(time.monotonic())) and None)
    assert 0.1 <= reached.result(timeout=120) - started < 30
    reactor.stop()


def test_signals_that_end_a_process_are_left_to_its_main_thread() -> None:
    reactor, seen = Reactor(), Future[set[int]]()
    reactor.call(lambda: seen.set_result({*map(int, signal.pthread_sigmask(signal.SIG_BLOCK, ()))}))
    assert {signal.SIGINT, signal.SIGTERM} <= seen.result(timeout=120)
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())
    reactor.stop()
