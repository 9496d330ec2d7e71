"""Event loop thread that waits for pipes and timers and runs callbacks. All state of sessions and workers lives on it.

Invariants: callbacks run one at a time, in the order in which they became due, so shared state needs no locks. They run
on the reactor's thread, or, when `here` finds nothing else running or due, on the caller's, which saves a wake-up. A
callback must not block, and must tolerate a watched descriptor with nothing to read.
"""

from __future__ import annotations

import contextlib
import heapq
import itertools
import logging
import math
import os
import selectors
import signal
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

Callback = Callable[[], None]
T = TypeVar("T")
log = logging.getLogger(__name__)


class Timer:
    """Callback that the reactor runs at a time. `cancel` drops the reference to the callback immediately."""

    __slots__ = ("callback",)

    def __init__(self, callback: Callback) -> None:
        self.callback: Callback | None = callback

    def cancel(self) -> None:
        self.callback = None

    @property
    def cancelled(self) -> bool:
        return self.callback is None


class Reactor:
    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._wake_out, self._wake_in = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._selector.register(self._wake_out, selectors.EVENT_READ, None)
        self._soon: deque[Callback] = deque()
        self._timers: list[tuple[float, int, Timer]] = []
        self._numbers = itertools.count()
        self._asleep = False
        self._sleeps_until = 0.0
        self._running = threading.Lock()
        """Held while a callback runs."""
        self._stopping = self._stopped = False
        self._thread = threading.Thread(target=self._loop, name="sandbox-reactor", daemon=True)
        self._thread.start()

    def call(self, callback: Callback) -> None:
        """Schedules a callback on the reactor's thread and returns immediately, from any thread.

        After `stop` the callback runs here, so that a waiting caller finds everything closed instead of blocking
        forever.
        """
        self._soon.append(callback)
        if self._stopped:
            self._run_rest()
        else:
            self._wake()

    def result(self, callback: Callable[[], T]) -> T:
        """Runs a callback on the reactor's thread; returns its result or raises its exception. Not from a callback."""
        done: Future[T] = Future()

        def run() -> None:
            try:
                done.set_result(callback())
            except BaseException as error:  # noqa: BLE001 - re-raised in the waiting thread
                done.set_exception(error)

        self.call(run)
        return done.result()

    def here(self, callback: Callback) -> None:
        """Runs a callback on this thread if no other runs or is due; otherwise on the reactor's thread, like `call`."""
        if self._soon or self._stopped or not self._running.acquire(blocking=False):
            self.call(callback)
            return
        try:
            if self._soon:  # arrived between the check and the lock, so it goes first
                self._soon.append(callback)
                self._wake()
            else:
                self._run(callback)
        finally:
            self._running.release()

    def after(self, seconds: float, callback: Callback) -> Timer:
        """Schedules a callback on the reactor's thread after a delay in seconds; from a callback only."""
        timer, due = Timer(callback), time.monotonic() + seconds
        heapq.heappush(self._timers, (due, next(self._numbers), timer))
        if due < self._sleeps_until:
            self._wake()
        return timer

    def watch(self, descriptor: int, events: int, callback: Callback) -> None:
        """Calls back when a descriptor is ready for `events` of `selectors`; 0 stops watching. From a callback only.
        Does nothing after `stop`, or for a closed (negative) descriptor."""
        if self._stopped or descriptor < 0:
            return
        known = descriptor in self._selector.get_map()
        if not events:
            if known:
                self._selector.unregister(descriptor)
        elif known:
            self._selector.modify(descriptor, events, callback)
        else:
            self._selector.register(descriptor, events, callback)

    def stop(self) -> None:
        """Ends the reactor's thread after the callbacks due now; later timers never run. Stopping twice is fine."""
        if self._stopped:
            return
        self.call(self._end)
        self._thread.join()
        self._stopped = True
        self._run_rest()
        self._selector.close()
        os.close(self._wake_out)
        os.close(self._wake_in)

    def _run_rest(self) -> None:
        with contextlib.suppress(IndexError):  # another thread took the last one
            while True:
                self._run(self._soon.popleft())

    def _end(self) -> None:
        self._stopping = True

    def _wake(self) -> None:
        if self._asleep:
            self._asleep = False
            os.write(self._wake_in, b"x")

    def _loop(self) -> None:
        # These signals are for the main thread, which wakes only for signals delivered to itself.
        signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM))
        while not self._stopping:
            with self._running:
                wait = self._until_next()
                self._sleeps_until = math.inf if wait is None else time.monotonic() + wait
                self._asleep = True
            ready = self._selector.select(0.0 if self._soon else wait)
            self._asleep = False
            with self._running:
                self._round(ready)

    def _round(self, ready: list[tuple[selectors.SelectorKey, int]]) -> None:
        watched = self._selector.get_map()
        for found, _ in ready:
            key = watched.get(found.fd)  # current entry: an earlier callback may have unwatched or closed it
            if key is None:
                continue
            if key.data is None:
                os.read(self._wake_out, 4096)
            else:
                self._run(key.data)
        for _ in range(len(self._soon)):
            self._run(self._soon.popleft())
        now = time.monotonic()
        while self._timers and self._timers[0][0] <= now:
            timer = heapq.heappop(self._timers)[2]
            if timer.callback is not None:
                self._run(timer.callback)

    def _run(self, callback: Callback) -> None:
        try:
            callback()
        except Exception:  # one session's failure must not stop the others
            log.exception("a callback of the sandbox reactor failed")

    def _until_next(self) -> float | None:
        return max(0.0, self._timers[0][0] - time.monotonic()) if self._timers else None
