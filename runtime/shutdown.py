"""Lets a process wait for its end: for a signal, or until it is told to end itself.

What always holds: a signal that has come is never missed, whichever thread the kernel gave it to. Python runs handlers
in the main thread only, and a main thread that sleeps on a lock is woken by a signal only when it gets it itself; here
it sleeps on a pipe, into which Python's own C code writes from any thread (signal.set_wakeup_fd).
"""

from __future__ import annotations

import contextlib
import os
import select
import signal

SIGNALS = (signal.SIGTERM, signal.SIGINT)


class Shutdown:
    """Waits for the end; made in the main thread, once a process; `set` may be called from anywhere. It is never taken
    back."""

    def __init__(self, signals: tuple[signal.Signals, ...] = SIGNALS) -> None:
        """From now on these signals no longer end the process by themselves. Raises OSError without descriptors."""
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
        """Says whether it shall end, at the latest after so many seconds. What came is left there for the next who
        asks."""
        watched = select.poll()
        watched.register(self._out, select.POLLIN)
        return bool(watched.poll(None if seconds is None else 1000 * seconds))
