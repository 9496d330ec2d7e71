"""A thread that does one step whenever it is woken, and again after the time that the step asks for.

What always holds: a full disk ends nothing, because what could not be written is done again soon; any other error ends
the thread and is handed on, never lost.
"""

from __future__ import annotations

import errno
import sqlite3
import threading
from collections.abc import Callable

import structlog

log = structlog.get_logger("assay")
AGAIN_SECONDS = 5.0
"""Until what a full disk kept from being written is tried again."""


class WakeThread:
    """`start` once, `wake` when there may be something to do, `close` to end. `step` gives the seconds until the next
    one, None to wait until it is woken; `on_error` gets what ended the thread unasked."""

    def __init__(self, name: str, step: Callable[[], float | None], on_error: Callable[[Exception], None]) -> None:
        self._step = step
        self._on_error = on_error
        self._wake = threading.Event()
        self.closing = False
        self._thread = threading.Thread(target=self._run, name=name)

    def start(self) -> None:
        self._thread.start()

    def wake(self) -> None:
        self._wake.set()

    def close(self) -> None:
        self.closing = True
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        try:
            while not self.closing:
                try:
                    seconds = self._step()
                except Exception as error:
                    if not is_full_disk(error):
                        raise
                    log.warning("the disk is full: it is tried again", problem=str(error), seconds=AGAIN_SECONDS)
                    seconds = AGAIN_SECONDS
                self._wake.wait(seconds)
                self._wake.clear()
        except Exception as error:  # noqa: BLE001 - the thread's outermost frame: handed on, never lost
            self._on_error(error)


def is_full_disk(error: BaseException) -> bool:
    """Whether the error, or what it was raised from, is that no room is left."""
    met: BaseException | None = error
    while met is not None:
        if isinstance(met, OSError) and met.errno in (errno.ENOSPC, errno.EDQUOT):
            return True
        if isinstance(met, sqlite3.Error) and getattr(met, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_FULL:
            return True
        met = met.__cause__
    return False
