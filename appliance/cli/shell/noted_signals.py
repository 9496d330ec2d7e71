"""Records signals for threads to look at, without locks, and handles dropped interrupts.

Invariants: a handler takes no lock. Python may run it right after the main thread took the lock of an Event or Future:
setting an Event there would deadlock, and a KeyboardInterrupt would leave the lock taken forever.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self

AFTER_SECONDS = 0.05
"""Delay before a dropped interrupt is raised again, in seconds; repeated if dropped once more."""


def hear_again() -> None:
    """Makes Python re-raise, in the main thread, a KeyboardInterrupt that it dropped in a finalizer or C callback. Uses
    the process's SIGALRM."""
    sys.unraisablehook = _dropped


def _dropped(what: sys.UnraisableHookArgs) -> None:
    error = what.exc_value
    in_main = threading.current_thread() is threading.main_thread()
    if not isinstance(error, (KeyboardInterrupt, SystemExit)) or not in_main:
        sys.__unraisablehook__(what)
        return

    def again(*_: object) -> None:
        raise error

    signal.signal(signal.SIGALRM, again)
    signal.setitimer(signal.ITIMER_REAL, AFTER_SECONDS)


SIGNALS = (signal.SIGTERM, signal.SIGHUP)
CHILD_SECONDS = 20.0
"""Time for a child to restore its terminal before it is killed, in seconds."""


@contextmanager
def left_by_signal(*, needs_terminal: bool) -> Iterator[None]:
    """Turns SIGTERM and SIGHUP into SystemExit within the block, so that it is left in order. Main thread only."""
    before = {number: signal.getsignal(number) for number in SIGNALS}

    def leave(number: int, _: object) -> None:
        for one in SIGNALS:
            signal.signal(one, signal.SIG_IGN)
        raise SystemExit(128 + number)

    for number, handler in before.items():
        if needs_terminal or handler is not signal.SIG_IGN:
            signal.signal(number, leave)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def run_child(command: Sequence[str], **options: Any) -> int:
    """Runs a child process, with these options of Popen, and returns its exit code; on an exception ends the child
    first."""
    with subprocess.Popen(command, **options) as child:
        try:
            return child.wait()
        except BaseException:
            child.terminate()
            try:
                child.wait(CHILD_SECONDS)
            except subprocess.TimeoutExpired:
                child.kill()
            raise


STOPS = frozenset((signal.SIGINT, signal.SIGTERM))


def noted(*numbers: signal.Signals) -> set[int]:
    """Returns a set that collects the numbers of these signals from now on; they end nothing. Ignored ones stay
    ignored. Main thread only."""
    came: set[int] = set()
    for number in numbers:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, lambda number, _: came.add(number))
    return came


class HeldInterrupt:
    """Defers Ctrl-C within the block, which checks `came`; raises it at the end at the latest. Ignored signals stay
    ignored. Main thread only."""

    def __enter__(self) -> Self:
        self._before = {one: signal.getsignal(one) for one in STOPS}
        self._seen = noted(*(one for one, handler in self._before.items() if handler is signal.default_int_handler))
        return self

    @property
    def came(self) -> bool:
        return bool(self._seen)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Restores the signal handlers. Raises KeyboardInterrupt if Ctrl-C came and nothing else was raised."""
        for number, handler in self._before.items():
            signal.signal(number, handler)
        if self.came and kind is None:
            raise KeyboardInterrupt
