"""The thread that gives the worker its work: whatever the ledger says is unfinished, one thing at a time.

Order: queued jobs first, because people wait for them; then the unfinished cycle. A job that is queued while a cycle
runs waits for the cycle's end: two workers would share the cores and the memory that one is sized for. Before there is
a champion, jobs are done that a solver may do. What waits for something that passes (our own broker's next start, room
on the disk) is tried again soon.
"""

from __future__ import annotations

from collections.abc import Callable

from appliance.daemon.core import Core
from appliance.daemon.wake_thread import WakeThread
from appliance.ledger.audited import TamperedError

CHECK_SECONDS = 60.0
"""Between two checks of what only the clock moves on."""
WAITING_SECONDS = 2.0
"""Between two checks whether work that waits for something can go on."""


class Dispatcher(WakeThread):
    def __init__(self, core: Core, on_error: Callable[[Exception], None]) -> None:
        super().__init__("dispatcher", self._work, on_error)
        self._core = core
        self._interrupted = False

    def close(self) -> None:
        """Ends the running worker and the thread."""
        self.closing = True
        self._core.supervisor.close()
        super().close()

    def _work(self) -> float:
        """Works until nothing is left that can be begun now; nothing while somebody has changed the ledger."""
        try:
            return self._work_on()
        except TamperedError as error:
            self._core.supervisor.hold(f"{error}; {error.hint}")
            return WAITING_SECONDS

    def _work_on(self) -> float:
        if self._interrupted:
            self._core.supervisor.requeue_running()
        self._interrupted = True
        self._core.governance.check_canary()
        while not self.closing and self._do_next():
            pass
        self._interrupted = False
        return WAITING_SECONDS if self._core.supervisor.waits_for else CHECK_SECONDS

    def _do_next(self) -> bool:
        """One piece of work; False when there is none, or none that can be begun now."""
        supervisor = self._core.supervisor
        if supervisor.next_job() is not None:
            supervisor.run_jobs()
        elif (cycle := self._core.cycles.unfinished()) is not None:
            self._core.cycles.run(cycle.id)
        else:
            supervisor.clear_wait()
            return False
        return not supervisor.waits_for
