"""The thread that gives the worker its work: whatever the ledger says is unfinished, one thing at a time.

Order: queued jobs first, because people wait for them; then the unfinished cycle. A job that is queued while a cycle
runs waits for the cycle's end: two workers would share the cores and the memory that one is sized for. Before there is
a champion, jobs are done that a solver may do. A full disk ends nothing: what could not be written is done again. What
waits for something that passes (our own broker's next start, room on the disk) is looked at again soon.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

import structlog

from appliance.daemon.core import Core
from appliance.daemon.full_disk import AGAIN_SECONDS, is_full_disk

log = structlog.get_logger("assay")

TENDED_SECONDS = 60.0
"""How often what only the clock moves on is looked at."""
HELD_UP_SECONDS = 2.0
"""How often it is looked at whether work that waits for something can go on."""


class Dispatcher:
    """`start` once, `wake` when there may be work, `close` to end; `on_error` hears of what ended it unasked."""

    def __init__(self, core: Core, on_error: Callable[[Exception], None]) -> None:
        self._core = core
        self._on_error = on_error
        self._wake = threading.Event()
        self._closing = False
        self._thread = threading.Thread(target=self._run, name="dispatcher")

    def start(self) -> None:
        self._wake.set()
        self._thread.start()

    def wake(self) -> None:
        self._wake.set()

    def close(self) -> None:
        """Ends the running worker and the thread."""
        self._closing = True
        self._wake.set()
        self._core.crew.close()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        try:
            seconds, full = TENDED_SECONDS, False
            while not self._closing:
                self._wake.wait(seconds)
                self._wake.clear()
                try:
                    if full:
                        self._core.crew.put_back()
                        full = False
                    self._core.tend()
                    while not self._closing and self._do_next():
                        pass
                    seconds = HELD_UP_SECONDS if self._core.crew.waits_for else TENDED_SECONDS
                except Exception as error:
                    if not is_full_disk(error):
                        raise
                    log.warning("the disk is full: it is tried again", problem=str(error), seconds=AGAIN_SECONDS)
                    seconds, full = AGAIN_SECONDS, True
        except Exception as error:  # noqa: BLE001 - the thread's outermost frame: handed on, never lost
            self._on_error(error)

    def _do_next(self) -> bool:
        """One piece of work; False when there is none, or none that can be begun now."""
        if self._core.has_job():
            self._core.run_jobs_worker()
        elif (cycle := self._core.unfinished_cycle()) is not None:
            self._core.run_cycle_worker(cycle.id)
        else:
            self._core.crew.rest()
            return False
        return not self._core.crew.waits_for
