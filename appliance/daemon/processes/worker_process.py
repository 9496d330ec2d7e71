"""One worker: the child process with the model, whose death is an event and never the core's own.

Invariants: the worker has its own process group, dies with the core (PDEATHSIG, and its ledger connection closes), runs
at a lower priority, and has two descriptors besides the standard three: the ledger connection, which accepts only the
calls of its work, and its settings, in memory where no file can be exchanged. It is told which policy is in force, and
works under no other. When `run` returns, the whole group is dead.

    worker prepare|train|evaluate <cycle>  --policy SHA256 --ledger-fd N --data DIR --settings FILE
    worker jobs any|solvers|model          --policy SHA256 --ledger-fd N --data DIR --settings FILE

Each worker is forked by `appliance.worker.forkserver`. Once a fork server has loaded a model's libraries, which takes
seconds, a spare of it waits: if the first is killed, the next worker is forked from the spare.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path

from appliance.daemon.processes.child_log import ChildLog
from appliance.daemon.processes.fork_server import ForkServer
from appliance.daemon.processes.wake_thread import WORK_SECONDS
from appliance.errors import ExitCode
from appliance.ledger.grants import grant_of
from appliance.ledger.leases import Holder
from appliance.ledger.ledger import LedgerError
from appliance.ledger.remote import serve_ledger
from appliance.ledger.sqlite import SqliteLedger
from appliance.system.process_state import MemoryKills, is_stopped

LIBRARIES = (
    "appliance.worker.__main__",
    "appliance.worker.tasks",
    "appliance.worker.work_on_jobs",
    "verifiers.predicate.verifier",
    "securesystemslib.dsse",
)
_MODELS = ("appliance.worker.cycle", "appliance.inference.torch.engine", "transformers.modeling_utils")
"""Modules loaded only for work with a model."""


@dataclass(frozen=True)
class WorkerEnd:
    """Exit of a worker process, as the daemon saw it."""

    code: int
    """Exit status; minus the signal number if a signal killed it."""
    stopped: bool
    """True if the core asked it to end."""
    seconds: float
    last_line: str
    """Last line of its standard error: untrusted text."""
    trouble: str = ""
    """Reason why its log could not be written; empty if it was."""
    stuck: str = ""
    """Reason why it was killed here; empty if it was not."""
    no_memory: bool = False
    """True if the kernel counted an out-of-memory kill in its control group meanwhile."""

    @property
    def failed(self) -> bool:
        return self.code != 0 and not self.stopped

    @property
    def reason(self) -> str:
        """Sentence for a person that says how the worker ended."""
        if self.stuck:
            return f"{self.stuck}: it was killed after {self.seconds:.0f} s"
        if self.code < 0:
            name = signal.Signals(-self.code).name
            if self.code == -signal.SIGKILL and self.no_memory:
                return f"the worker ran out of memory after {self.seconds:.0f} s, and the kernel killed it"
            return f"the worker was killed by {name} after {self.seconds:.0f} s"
        why = f": {self.last_line}" if self.last_line else ", without a message"
        return f"the worker ended with status {self.code} after {self.seconds:.0f} s{why}"


@dataclass
class WorkerProcess:
    """Runs one worker process at a time. `run` belongs to one thread; `stop` may be called from any.

    `command` is a program in the worker's place, for tests of its surroundings.
    """

    ledger: SqliteLedger
    data: Path
    settings: str
    policy: Callable[[], str]
    """Returns the digest of the policy in force."""
    log: ChildLog
    command: Sequence[str] = ()
    stuck: Callable[[], str] = lambda: ""
    """Called every `look_seconds`; returns why the worker must be killed, empty if it need not be."""
    grace_seconds: float = 10.0
    close_seconds: float = WORK_SECONDS
    """Grace in seconds when the daemon itself ends."""
    look_seconds: float = 5.0
    nice: int = 5

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        self._forks: ForkServer | None = None
        self._spare: ForkServer | None = None
        self._keeps_spare = False
        self._pid: int | None = None
        self._ended = threading.Event()
        self._stopping = self._closed = False
        self._stuck = ""

    @property
    def pid(self) -> int | None:
        return self._pid

    def run(self, work: Sequence[str], holder: Holder) -> WorkerEnd:
        """Starts a worker process on a cycle or on jobs and waits for its end. `work` is `prepare`, `train` or
        `evaluate` and a cycle's id, or `jobs` and their part. The worker's writes count while the holder's leases are
        valid; they end with it.

        The caller's thread must live meanwhile: the kernel kills the worker when the thread that started it ends. An
        exception here (Ctrl-C) stops the worker first. After `close` nothing starts any more.
        """
        ours, theirs = Pipe()
        reading, writing = os.pipe()
        with ours, os.fdopen(reading, "rb") as errors:
            begun = time.monotonic()
            try:
                pid = self._start(work, theirs, writing)
            except OSError as error:  # also if killed while loading: counts as a worker's death
                seconds = time.monotonic() - begun
                self._release(holder)
                return WorkerEnd(int(ExitCode.INFRASTRUCTURE), stopped=False, seconds=seconds, last_line=str(error))
            finally:
                theirs.close()
                os.close(writing)
            if pid is None:
                return WorkerEnd(0, stopped=True, seconds=0.0, last_line="")
            started, memory = time.monotonic(), MemoryKills.seen_from(pid)
            line = (ours, self.ledger, grant_of(work), holder)
            serving = threading.Thread(target=serve_ledger, args=line, name="worker-ledger", daemon=True)
            hearing = threading.Thread(target=self.log.drain, args=(errors,), name="worker-log", daemon=True)
            serving.start()
            hearing.start()
            try:
                self._look_after_spare()
                code = self._wait()
            except BaseException:
                self.stop()
                self._wait()
                raise
            finally:
                _kill_group(pid)
                holder.gone, no_memory = True, memory.more
                self.ledger.tell_waiting()
                # Calls still in the socket are executed before the ledger is read.
                serving.join(timeout=30)
                hearing.join(timeout=5)
                self._release(holder)
                with self._lock:
                    self._pid = None
                    stopped, self._stopping = self._stopping, False
                    self._tell(b"done")
        seconds, said = time.monotonic() - started, self.log.last_line()
        return WorkerEnd(code, stopped, seconds, said, self.log.trouble, self._stuck, no_memory)

    def _release(self, holder: Holder) -> None:
        holder.gone = True
        with contextlib.suppress(LedgerError):  # full disk; the next holder has another token anyway
            self.ledger.leases.release(holder)

    def stop(self, grace_seconds: float | None = None) -> None:
        """Asks the running worker to end, if any, and kills its process group after the grace."""
        with self._lock:
            if self._pid is None or self._ended.is_set():
                return
            self._stopping = True
            os.kill(self._pid, signal.SIGTERM)
        if not self._ended.wait(self.grace_seconds if grace_seconds is None else grace_seconds):
            with self._lock:
                if self._pid is not None:
                    _kill_group(self._pid)

    def close(self) -> None:
        """Stops the running worker and prevents further ones."""
        with self._lock:
            self._closed = True
        self.stop(min(self.close_seconds, self.grace_seconds))
        with self._lock:
            if self._pid is None:
                self._drop_all()

    def _start(self, work: Sequence[str], ledger: Connection, errors: int) -> int | None:
        """Forks a worker and returns its pid, None after `close`. Raises OSError if none can be started."""
        arguments = ["--policy", self.policy(), "--ledger-fd", "LEDGER", "--data", str(self.data)]
        arguments += ["--settings", "SETTINGS"]
        with_model = work[0] != "jobs" or (work[1] != "solvers" and self.ledger.alias("champion") is not None)
        libraries = () if self.command else LIBRARIES + (_MODELS if with_model else ())
        program = self.command or ("",)
        request = {"arguments": [*program, *work, *arguments], "libraries": libraries}
        with self._lock, os.fdopen(os.memfd_create("settings"), "w", encoding="utf-8") as settings:
            settings.write(self.settings)
            settings.flush()
            descriptors = [ledger.fileno(), errors, settings.fileno()]
            self._stopping, self._stuck, self._keeps_spare = False, "", with_model
            self._ended.clear()
            for _ in range(3):  # the fork server and its spare may have ended idle
                if self._closed:
                    return None
                self._forks = self._forks or ForkServer.begun(self.nice)
                with contextlib.suppress(OSError):
                    self._forks.send(request, descriptors)
                    if self._answers() and (reply := self._forks.reply()):
                        self._pid = int(reply["pid"])
                        return self._pid
                self._drop()
        raise OSError("no worker can be started: the fork server ends immediately")

    def _wait(self) -> int:
        """Waits for the worker's end and returns its exit status; minus the signal number if a signal killed it.

        A worker is killed if it or its fork server was stopped (SIGSTOP) at two looks in a row, or if it is stuck.
        """
        assert self._forks is not None
        assert self._pid is not None
        stopped = ""
        while not self._forks.says_something(self.look_seconds):
            before, stopped = stopped, self._stopped()
            if reason := (stopped if before == stopped else "") or self.stuck():
                self._stuck = reason
                _kill_group(self._pid)
                if self._forks.is_stopped:
                    os.kill(self._forks.pid, signal.SIGKILL)
            elif not stopped:
                self._look_after_spare()
        try:
            reply = self._forks.reply()
        except OSError:
            reply = None
        self._ended.set()
        return -signal.SIGKILL if reply is None else int(reply["code"])

    def _answers(self) -> bool:
        """Waits for the fork server's reply; it may load libraries first. False if a signal had stopped it at two looks
        in a row."""
        assert self._forks is not None
        was_stopped = False
        while not self._forks.says_something(self.look_seconds):
            stopped = self._forks.is_stopped
            if was_stopped and stopped:
                return False
            was_stopped = stopped
        return True

    def _stopped(self) -> str:
        """Returns a sentence if a signal stopped the worker or its fork server; empty if neither."""
        pids = {"the worker": self._pid, "the fork server": self._forks.pid if self._forks else None}
        there = (name for name, pid in pids.items() if pid is not None and is_stopped(pid))
        return next((f"{name} was stopped by a signal and did not resume" for name in there), "")

    def _tell(self, message: bytes) -> None:
        if self._closed or self._forks is None:
            self._drop_all()
            return
        with contextlib.suppress(OSError):
            self._forks.line.send(message)

    def _look_after_spare(self) -> None:
        """Forks a spare of the fork server if one is useful and the last one, if any, has ended."""
        if self._spare is not None and self._spare.says_something(0.0):  # got no request, so it has ended
            self._spare.end()
            self._spare = None
        if self._spare is None and self._keeps_spare and self._forks is not None:
            self._spare = self._forks.spare()

    def _drop(self) -> None:
        """Ends the fork server of workers; its spare takes its place."""
        if self._forks is not None:
            self._forks.end()
        self._forks, self._spare = self._spare, None

    def _drop_all(self) -> None:
        while self._forks is not None or self._spare is not None:
            self._drop()


def _kill_group(leader: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(leader, signal.SIGKILL)
