"""The reactor runs what it is given in order, whatever one callback does, and nobody waits for one that has ended."""

from __future__ import annotations

from concurrent.futures import Future

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
    assert seen.result(timeout=5) == [1, 2]
    reactor.stop()


def test_a_cancelled_timer_is_not_heard_and_the_others_come_in_order() -> None:
    reactor, order, done = Reactor(), list[str](), Future[None]()

    def begin() -> None:
        reactor.after(0.02, lambda: order.append("second"))
        reactor.after(0.01, lambda: order.append("first"))
        reactor.after(0.015, lambda: order.append("cancelled")).cancel()
        reactor.after(0.03, lambda: done.set_result(None))

    reactor.call(begin)
    done.result(timeout=5)
    assert order == ["first", "second"]
    reactor.stop()


def test_what_comes_after_the_end_is_run_at_once() -> None:
    reactor, late = Reactor(), Future[str]()
    reactor.stop()
    reactor.call(lambda: late.set_result("done"))
    assert late.result(timeout=0) == "done"
