"""The thread that ends waiting jobs whose deadline has passed, also while the worker does something else.

It sleeps until the next deadline, and without one until it is woken.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from appliance.daemon.desk import JobDesk
from appliance.daemon.full_disk import AGAIN_SECONDS, is_full_disk

LONGEST_SECONDS = 60.0
"""Between two looks while a deadline is ahead: the machine's clock may be set."""


class Deadlines:
    """`start` once, `wake` when a job came, `close` to end; `on_error` hears of what ended it unasked."""

    def __init__(self, desk: JobDesk, on_error: Callable[[Exception], None]) -> None:
        self._desk = desk
        self._on_error = on_error
        self._wake = threading.Event()
        self._closing = False
        self._thread = threading.Thread(target=self._run, name="deadlines")

    def start(self) -> None:
        self._thread.start()

    def wake(self) -> None:
        self._wake.set()

    def close(self) -> None:
        self._closing = True
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        try:
            while not self._closing:
                try:
                    seconds = self._desk.end_overdue()
                except Exception as error:
                    if not is_full_disk(error):
                        raise
                    seconds = AGAIN_SECONDS
                self._wake.wait(None if seconds is None else min(seconds, LONGEST_SECONDS))
                self._wake.clear()
        except Exception as error:  # noqa: BLE001 - the thread's outermost frame: handed on, never lost
            self._on_error(error)
