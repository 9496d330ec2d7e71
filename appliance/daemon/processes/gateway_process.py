"""Runs the gateway beside the daemon, in a process of its own, and starts it again when it ends.

What always holds: it ends with the daemon, also when that is killed; what it writes is in `logs/gateway.log`; while it
keeps ending, it is started less and less often. The daemon works without it.
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
from appliance.daemon.processes import launch
from appliance.daemon.processes.child_log import ChildLog
from appliance.daemon.processes.wake_thread import WORK_SECONDS
from appliance.system.memory_kills import MemoryKills

FIRST_SECONDS, FACTOR, MOST_SECONDS = 1.0, 5.0, 60.0
WELL_SECONDS = 30.0
"""After which a gateway that ends is one that worked."""


class GatewayProcess:
    """`start` once, `close` last."""

    def __init__(self, settings: Settings, say: Callable[[str], None], command: Sequence[str] = ()) -> None:
        """`say` is told of every end; `command` is another program, for tests."""
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
        """Ends it, and returns when it has ended."""
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
        """How it ended. The thread that starts it waits for it: its end is tied to that."""
        broker = self._settings.sandbox.broker
        known = {"ASSAY_DATA": str(self._settings.data), "ASSAY_API__SOCKET": str(self._settings.socket_path)}
        known |= {"ASSAY_SANDBOX__BROKER": str(broker)} if broker is not None else {}
        launcher = (sys.executable, "-I", "-S", str(launch.__file__), str(os.getpid()), "0")
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
