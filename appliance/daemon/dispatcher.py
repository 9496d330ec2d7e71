"""The thread that gives the worker its work: whatever the ledger says is unfinished, one thing at a time.

Order: queued jobs first, because people wait for them; then the unfinished cycle. A job that is queued while a cycle
runs waits for the cycle's end: two workers would share the cores and the memory that one is sized for. Jobs wait for
the first champion, since there is nobody to do them before.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from appliance.daemon.core import Core


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
            while not self._closing:
                self._wake.wait()
                self._wake.clear()
                while not self._closing and self._do_next():
                    pass
        except Exception as error:  # noqa: BLE001 - the thread's outermost frame: handed on, never lost
            self._on_error(error)

    def _do_next(self) -> bool:
        """One piece of work; False when there is none."""
        ledger = self._core.ledger
        if ledger.alias("champion") is not None and ledger.next_job() is not None:
            self._core.run_jobs_worker()
            return True
        cycle = self._core.unfinished_cycle()
        if cycle is not None:
            self._core.run_cycle_worker(cycle.id)
            return True
        return False
