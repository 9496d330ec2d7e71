"""Waits for shutdown by a signal or by `Shutdown.set`.

Invariants: a delivered signal is never missed, whichever thread the kernel chose. Python runs handlers only in the main
thread, and a main thread asleep on a lock wakes only for its own signals; here it sleeps on a pipe that Python's C code
writes to from any thread (signal.set_wakeup_fd).
"""

from __future__ import annotations

import contextlib
import os
import select
import signal

SIGNALS = (signal.SIGTERM, signal.SIGINT)


class Shutdown:
    """Request to end this process, created once in the main thread; `set` works from any thread and is final."""

    def __init__(self, signals: tuple[signal.Signals, ...] = SIGNALS) -> None:
        """Installs signal handlers, so that these signals request shutdown instead of ending the process. Raises
        OSError without descriptors."""
        self._out, self._in = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(self._in, warn_on_full_buffer=False)
        for number in signals:
            signal.signal(number, lambda *_: None)

    def set(self) -> None:
        with contextlib.suppress(BlockingIOError):  # full of such bytes already
            os.write(self._in, b"x")

    def is_set(self) -> bool:
        return self.wait(0.0)

    def wait(self, seconds: float | None = None) -> bool:
        """Waits at most `seconds`; True if shutdown was requested. The request stays visible to later calls."""
        watched = select.poll()
        watched.register(self._out, select.POLLIN)
        return bool(watched.poll(None if seconds is None else 1000 * seconds))
