"""Threads of the daemon: one gives workers the ledger's unfinished work, one collects tasks, one runs the schedule.

Two lanes run concurrently. Solvers work on jobs beside everything else: they need no model, and their worker waits for
further jobs. Work with the model is sequential: jobs first, because people wait for them, then the unfinished cycle; a
job that needs the model waits for a running cycle to end, because two workers would share the cores and memory that one
is sized for. Work that waits for something temporary (a restart of the broker, disk space) is retried soon.

Invariants: a failure is an event and never prevents a night; nothing is started without candidates, or while a cycle is
unfinished.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from tempfile import TemporaryFile

from appliance.curriculum.own_files import names_in
from appliance.curriculum.own_tasksets import read_own
from appliance.daemon.coordination.core import Core
from appliance.daemon.nights.runner import LOOK_SECONDS, Nights
from appliance.daemon.processes.wake_thread import WORK_SECONDS, WakeThread, close_together, takes_no_writes
from appliance.daemon.service.own_work import SOURCES
from appliance.daemon.service.supervisor import WorkerSupervisor
from appliance.errors import explain
from appliance.ledger.audited import TamperedError
from common.errors import HintedError


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


SECONDS = 900.0
"""Time limit for all checks, in seconds; the rest is left for another night."""
MOST_CHARS = 300
READ_BYTES = 64 << 10
COLLECTOR_LOOK_SECONDS = 0.1


def collect_tasks(core: Core, closing: Callable[[], bool] = lambda: False) -> None:
    """Makes and certifies tasks of the owner's verified work, with `assay curriculum collect` and `certify` as child
    processes. Once `closing` returns True they are terminated, and the rest is left for another night."""
    if core.cycles.unfinished() is not None:
        return
    try:
        if not core.collected.candidates():
            return
    except (HintedError, OSError) as error:
        core.events.add("curriculum", f"your verified work could not become tasks: {str(error)[:MOST_CHARS]}")
        return
    before = _versions(core)
    if _ran(core, closing, "collect"):
        for name, version in _versions(core).items():
            if before.get(name) != version:
                _ran(core, closing, "certify", name)  # only the certified version is trained on


def _versions(core: Core) -> dict[str, int]:
    """Returns the version of each existing taskset collected from the owner's work, by name."""
    names = [name for name in names_in(core.data) if name.partition("/")[2] in SOURCES]
    return {name: read_own(core.data, name).version for name in names}


def _ran(core: Core, closing: Callable[[], bool], *arguments: str) -> bool:
    """Runs `assay curriculum` with these arguments and returns True if it succeeded; reports a failure as an event."""
    known = {"ASSAY_DATA": str(core.data), "ASSAY_API__SOCKET": str(core.settings.socket_path)}
    if core.settings.sandbox.broker is not None:
        known["ASSAY_SANDBOX__BROKER"] = str(core.settings.sandbox.broker)
    command = [sys.executable, "-I", "-m", "appliance.cli.main", "curriculum", *arguments]
    with TemporaryFile() as errors:
        try:
            code = run_until(command, os.environ | known, errors.fileno(), closing)
        except (OSError, subprocess.TimeoutExpired) as error:
            core.events.add("curriculum", f"assay curriculum {' '.join(arguments)}: {type(error).__name__}")
            return False
        if code and not closing():
            errors.seek(0)
            said = errors.read(READ_BYTES).decode(errors="replace").strip()[:MOST_CHARS]
            core.events.add("curriculum", f"assay curriculum {' '.join(arguments)}: {said}")
    return code == 0


def run_until(
    command: Sequence[str],
    environ: Mapping[str, str],
    errors: int,
    closing: Callable[[], bool],
    seconds: float = SECONDS,
) -> int:
    """Runs a command to its end and returns its exit code. Terminates it once `closing` returns True, and kills it
    after its grace. Raises TimeoutExpired after `seconds`, OSError."""
    deadline = time.monotonic() + seconds
    with subprocess.Popen(
        command, env=environ, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors
    ) as process:
        try:
            while not closing() and time.monotonic() < deadline:
                with suppress(subprocess.TimeoutExpired):
                    return process.wait(COLLECTOR_LOOK_SECONDS)
            if not closing():
                raise subprocess.TimeoutExpired(command, seconds)
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                return process.wait(WORK_SECONDS)
            return -signal.SIGKILL
        finally:
            process.kill()


def schedule_thread(nights: Nights, wake: Callable[[], object], on_error: Callable[[Exception], None]) -> WakeThread:
    """Creates the thread that runs the schedule of nights, without starting it. `wake` is called when a night's cycle
    may work."""

    def look() -> float:
        try:
            seconds = nights.look()
        except TamperedError:
            return LOOK_SECONDS  # nothing begins meanwhile; the dispatcher reports it
        if nights.working:
            wake()
        return seconds

    return WakeThread("schedule", look, on_error)
