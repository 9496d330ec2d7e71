"""Runs the gateway as a child process of the daemon, and restarts it when it ends.

Invariants: it dies with the daemon, even if the daemon is killed; its output is in `logs/gateway.log`; pauses between
restarts grow while it keeps ending. The daemon works without it.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence

from appliance.config.configuration import Settings
from appliance.daemon.processes.child_log import ChildLog
from appliance.daemon.processes.wake_thread import WORK_SECONDS
from appliance.system import ending
from appliance.system.process_state import MemoryKills

FIRST_SECONDS, FACTOR, MOST_SECONDS = 1.0, 5.0, 60.0
WELL_SECONDS = 30.0
"""Running time after which the restart pauses begin anew, in seconds."""


class GatewayProcess:
    """Runs the gateway as a child process and restarts it when it ends: `start` once, `close` last."""

    def __init__(self, settings: Settings, say: Callable[[str], None], command: Sequence[str] = ()) -> None:
        """Prepares the thread that runs the gateway. `say` gets a sentence for every end; `command` is another program,
        for tests."""
        assay = (sys.executable, "-I", "-m", "appliance.cli.main", "gateway", "serve")
        self._command = tuple(command) or assay
        self._settings, self._say = settings, say
        self._log = ChildLog(settings.data / "logs" / "gateway.log")
        self._closing = threading.Event()
        self._lock = threading.Lock()
        self._child: subprocess.Popen[bytes] | None = None
        self._thread = threading.Thread(target=self._run, name="gateway")

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """Ends the gateway's process and waits for it."""
        with self._lock:
            self._closing.set()
            child = self._child
        if child is not None:
            child.terminate()
            try:
                child.wait(WORK_SECONDS)
            except subprocess.TimeoutExpired:
                child.kill()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        pause = FIRST_SECONDS
        while not self._closing.is_set():
            began = time.monotonic()
            how = self._once()
            if self._closing.is_set():
                return
            pause = FIRST_SECONDS if time.monotonic() - began > WELL_SECONDS else pause
            said = self._log.last_line()
            self._say(f"the gateway {how} and starts again in {pause:g} s{': ' + said if said else ''}")
            self._closing.wait(pause)
            pause = min(MOST_SECONDS, pause * FACTOR)

    def _once(self) -> str:
        """Runs the gateway's process once, logging its output, and returns how it ended. Its death is tied to the
        thread that starts it, so that thread waits."""
        broker = self._settings.sandbox.broker
        known = {"ASSAY_DATA": str(self._settings.data), "ASSAY_API__SOCKET": str(self._settings.socket_path)}
        known |= {"ASSAY_SANDBOX__BROKER": str(broker)} if broker is not None else {}
        launcher = (sys.executable, "-I", "-S", str(ending.__file__), str(os.getpid()), "0")
        with self._lock:
            if self._closing.is_set():
                return ""
            try:
                self._child = subprocess.Popen(
                    [*launcher, *self._command],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.PIPE,
                    env=os.environ | known,
                )
            except OSError as error:
                self._log.keep(f"it cannot be started: {error.strerror}\n".encode())
                return "ended with status 5"
        child, memory = self._child, MemoryKills.seen_from(self._child.pid)
        assert child.stderr is not None
        self._log.drain(child.stderr)
        child.stderr.close()
        code = child.wait()
        starved = code == -signal.SIGKILL and memory.more
        return "ran out of memory, was killed by the kernel" if starved else f"ended with status {code}"
