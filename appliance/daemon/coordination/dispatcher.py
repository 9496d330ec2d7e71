"""Threads that give workers the unfinished work of the ledger.

Two lanes run concurrently. Solvers work on jobs beside everything else: they need no model, and their worker waits for
further jobs. Work with the model is sequential: jobs first, because people wait for them, then the unfinished cycle; a
job that needs the model waits for a running cycle to end, because two workers would share the cores and memory that one
is sized for. Work that waits for something temporary (a restart of the broker, disk space) is retried soon.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable

from appliance.daemon.coordination.core import Core
from appliance.daemon.processes.wake_thread import WakeThread, close_together, takes_no_writes
from appliance.daemon.service.supervisor import WorkerSupervisor
from appliance.errors import explain
from appliance.ledger.audited import TamperedError


def give_back() -> bool:
    """Returns free heap memory to the kernel; True if any was returned, False without glibc (malloc_trim(3))."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    return trim is not None and bool(trim(0))


CHECK_SECONDS = 60.0
"""Interval between checks for work that only time makes due, in seconds."""
WAITING_SECONDS = 0.5
"""Interval between checks for waiting work, in seconds."""


class _Lane(WakeThread):
    """A thread that does one kind of work in sequence, with its own worker."""

    def __init__(
        self,
        name: str,
        supervisor: WorkerSupervisor,
        do_next: Callable[[], bool],
        on_error: Callable[[Exception], None],
        before: Callable[[], object] = lambda: None,
    ) -> None:
        """Creates the thread without starting it. `do_next` does one piece of work and returns False if none can begin
        now; `before` runs ahead of each round."""
        super().__init__(name, self._work, on_error)
        self._supervisor = supervisor
        self._do_next = do_next
        self._before = before
        self._interrupted = False

    def close(self) -> None:
        """Ends this lane's running worker and its thread."""
        self.closing = True
        self._supervisor.close()
        super().close()

    def _work(self) -> float:
        """Runs work until nothing more can begin now, and returns the seconds until the next check. While the ledger is
        tampered with, does nothing and holds the supervisor."""
        try:
            return self._work_on()
        except TamperedError as error:
            self._supervisor.hold(f"{error}; {error.hint}")
            return WAITING_SECONDS
        except Exception as error:
            if takes_no_writes(error):
                self._supervisor.hold(f"{error}; {explain(error).hint}")
            raise

    def _work_on(self) -> float:
        if self._interrupted:
            self._supervisor.requeue_running()
        self._interrupted = True
        self._before()
        worked = False
        while not self.closing and self._do_next():
            worked = True
        if worked:
            give_back()
        self._interrupted = False
        return WAITING_SECONDS if self._supervisor.waits_for else CHECK_SECONDS


class Dispatcher:
    """Gives workers the ledger's unfinished work, in two threads: `start` once, `wake` when there may be work, `close`
    to end."""

    def __init__(self, core: Core, on_error: Callable[[Exception], None]) -> None:
        self._core = core
        self._model = _Lane("dispatcher", core.supervisor, self._next, on_error, core.governance.check_canary)
        self._solvers = _Lane("solvers", core.solvers, self._next_for_solvers, on_error)

    def start(self) -> None:
        self._model.start()
        self._solvers.start()

    def wake(self) -> None:
        self._solvers.wake()
        self._model.wake()

    def close(self) -> None:
        self._solvers.closing = self._model.closing = True
        close_together(self._solvers.close, self._model.close)

    def _next(self) -> bool:
        supervisor = self._core.supervisor
        if supervisor.next_job("model") is not None:
            supervisor.run_jobs("model")
        elif (cycle := self._core.cycles.unfinished()) is not None and not self._core.nights.holds(cycle.id):
            self._core.cycles.run(cycle.id)
        else:
            supervisor.clear_wait()
            return False
        return not supervisor.waits_for

    def _next_for_solvers(self) -> bool:
        solvers = self._core.solvers
        if solvers.next_job("solvers") is None:
            solvers.clear_wait()
            return False
        solvers.run_jobs("solvers")
        # Jobs that the solvers left need the model.
        self._model.wake()
        return not solvers.waits_for
