"""One worker: the child process that holds the model, and whose death is an event and never the core's own.

What always holds: the worker leads a process group of its own, ends when the core ends (PDEATHSIG, and its ledger's
connection closes), runs at a lower priority, and has exactly one inherited descriptor besides the standard three: its
end of the connection to the ledger. When `run` returns, the whole group is dead.

    python -I -m appliance.worker cycle <id> --ledger-fd N --data DIR --settings FILE
    python -I -m appliance.worker jobs       --ledger-fd N --data DIR --settings FILE
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path

from appliance.daemon import launch
from appliance.daemon.child_log import ChildLog
from appliance.ledger.ledger import Ledger
from appliance.ledger.remote import serve_ledger

WORKER = (sys.executable, "-I", "-m", "appliance.worker")


@dataclass(frozen=True)
class WorkerEnd:
    """How a worker ended, as the core saw it."""

    code: int
    """Exit status; minus the signal's number when a signal killed it."""
    stopped: bool
    """Whether the core asked it to end."""
    seconds: float
    last_line: str
    """The last line of its standard error: untrusted text."""
    trouble: str = ""
    """Why its log could not be kept; empty when it was."""

    @property
    def failed(self) -> bool:
        return self.code != 0 and not self.stopped

    @property
    def reason(self) -> str:
        """One sentence for a person."""
        if self.code < 0:
            name = signal.Signals(-self.code).name
            also = ": the machine may have run out of memory" if -self.code == signal.SIGKILL else ""
            return f"the worker was killed by {name} after {self.seconds:.0f} s{also}"
        why = f": {self.last_line}" if self.last_line else ", without a message"
        return f"the worker ended with status {self.code} after {self.seconds:.0f} s{why}"


@dataclass
class WorkerProcess:
    """Runs one worker at a time. `run` belongs to one thread; `stop` may be called from any."""

    ledger: Ledger
    data: Path
    settings_file: Path
    log: ChildLog
    command: Sequence[str] = WORKER
    grace_seconds: float = 10.0
    nice: int = 5

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._stopping = self._closed = False

    @property
    def pid(self) -> int | None:
        process = self._process
        return None if process is None else process.pid

    def run(self, work: Sequence[str]) -> WorkerEnd:
        """Starts a worker on `work` (`cycle`, id or `jobs`) and waits for its end, in the calling thread.

        The caller's thread must live on meanwhile: the kernel kills the worker when the thread that started it ends.
        An exception here (Ctrl-C) stops the worker first. After `close` nothing starts any more.
        """
        ours, theirs = Pipe()
        with ours:
            with theirs:
                process = self._start(work, theirs)
            if process is None:
                return WorkerEnd(0, stopped=True, seconds=0.0, last_line="")
            started = time.monotonic()
            serving = threading.Thread(target=serve_ledger, args=(ours, self.ledger), name="worker-ledger", daemon=True)
            reading = threading.Thread(target=self.log.drain, args=(process.stderr,), name="worker-log", daemon=True)
            serving.start()
            reading.start()
            try:
                code = process.wait()
            except BaseException:
                self.stop()
                process.wait()
                raise
            finally:
                _kill_group(process.pid)
                # What it had sent is still in the socket and is written before anybody looks at the ledger.
                serving.join(timeout=30)
                reading.join(timeout=5)
                with self._lock:
                    self._process = None
                    stopped, self._stopping = self._stopping, False
        return WorkerEnd(code, stopped, time.monotonic() - started, self.log.last_line(), self.log.trouble)

    def stop(self) -> None:
        """Asks the worker to end, and kills its group when it has not after the grace. Nothing happens without one."""
        with self._lock:
            process = self._process
            if process is None:
                return
            self._stopping = True
            process.terminate()
        try:
            process.wait(self.grace_seconds)
        except subprocess.TimeoutExpired:
            _kill_group(process.pid)

    def close(self) -> None:
        """Stops the worker, and lets no other start."""
        with self._lock:
            self._closed = True
        self.stop()

    def _start(self, work: Sequence[str], theirs: Connection) -> subprocess.Popen[bytes] | None:
        number = theirs.fileno()
        launcher = (sys.executable, "-I", "-S", str(launch.__file__), str(os.getpid()), str(self.nice))
        arguments = ("--ledger-fd", str(number), "--data", str(self.data), "--settings", str(self.settings_file))
        with self._lock:
            self._stopping = False
            if self._closed:
                return None
            self._process = subprocess.Popen(
                [*launcher, *self.command, *work, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                pass_fds=(number,),
                process_group=0,
            )
            return self._process


def _kill_group(leader: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(leader, signal.SIGKILL)
