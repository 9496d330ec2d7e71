"""Notes signals where threads work together, for whoever waits for them to look at.

What always holds: a handler takes no lock. Python runs it between any two steps of the main thread, also when that has
just taken the lock of an Event or a Future: one that sets an Event would wait for itself, and a KeyboardInterrupt there
leaves the lock taken, so that the thread that ends the Future waits for ever.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Self

AFTER_SECONDS = 0.05
"""By then that code has ended; where it has not, it is dropped once more, and raised once more."""


def hear_again() -> None:
    """From now on, in this process. It takes the alarm of a process for itself."""
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
"""That a child has to put its terminal back, before it is killed."""


@contextmanager
def left_by_signal(*, needs_terminal: bool) -> Iterator[None]:
    """Belongs to the main thread. Raises SystemExit out of whatever the block is doing."""
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


def run_child(command: Sequence[str]) -> int:
    """Its exit code. It is ended before this one's block is left in any other way."""
    with subprocess.Popen(command) as child:
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
    """From now on these signals end nothing: their numbers are added to the set. One that is ignored stays so. Belongs
    to the main thread."""
    came: set[int] = set()
    for number in numbers:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, lambda number, _: came.add(number))
    return came


class HeldInterrupt:
    """Holds Ctrl-C back in its block, which looks at `came`; what came is raised at the end at the latest. Where a
    signal was ignored, it still is. Belongs to the main thread."""

    def __enter__(self) -> Self:
        self._before = {one: signal.getsignal(one) for one in STOPS}
        self._seen = noted(*(one for one, handler in self._before.items() if handler is signal.default_int_handler))
        return self

    @property
    def came(self) -> bool:
        return bool(self._seen)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Raises KeyboardInterrupt where one came and nothing else was raised."""
        for number, handler in self._before.items():
            signal.signal(number, handler)
        if self.came and kind is None:
            raise KeyboardInterrupt
