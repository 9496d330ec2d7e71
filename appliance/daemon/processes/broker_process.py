"""The daemon's own broker: its guard process, its socket, and news of it.

Invariants: guard and broker are in their own session, so that Ctrl-C does not reach them before the worker has ended;
they end when this process ends. No file is written before `watch`: until then this process may be root, and the folder
another user's.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from appliance.daemon.processes import broker_guard
from appliance.daemon.processes.child_log import ChildLog
from appliance.system.process_state import MemoryKills
from common.plugins.allowed import NO_PLUGINS
from runtime.broker import ask
from runtime.errors import SandboxError
from runtime.model import FrozenModel
from runtime.settings import BrokerSettings

START_SECONDS = 120.0
"""Time limit for a broker to answer, in seconds: usually one, more on a busy machine. An ended broker is not awaited.
"""
GRACE_SECONDS = broker_guard.GRACE_SECONDS + 1.0
"""Grace of broker and guard, in seconds, after those in `appliance.daemon.processes.wake_thread`."""
MOST_CHARS = 600
MOST_BYTES = 1 << 18
NEWS = b"broker: news: "
"""Prefix of the broker's lines that people should see."""
ENVIRONMENT = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8"}
ENVIRONMENT |= NO_PLUGINS  # as root


class BrokerEnd(FrozenModel):
    """The guard's report of an ended sandbox broker."""

    code: int
    seconds: float
    retry_seconds: float | None

    def describe(self, last_line: str, *, no_memory: bool = False) -> str:
        """Describes the end of a sandbox broker for people, and when it restarts. `last_line` is the broker's last,
        used unless it was killed. `no_memory`: the kernel recorded an out-of-memory kill meanwhile."""
        how = f"was killed by signal {-self.code}" if self.code < 0 else f"ended with status {self.code}"
        if no_memory and self.code == -signal.SIGKILL:
            how = "ran out of memory and was killed by the kernel"
        then = "is not started again"
        if self.retry_seconds is not None:
            then = f"starts again {f'in {self.retry_seconds:g} s' if self.retry_seconds else 'immediately'}"
        return f"the broker {how} after {self.seconds:.0f} s and {then}" + (
            f": {_bare(last_line)}" if last_line and self.code > 0 else ""
        )


def _bare(line: str) -> str:
    return line.removeprefix("broker: ")[:MOST_CHARS]


class GuardLines:
    """Non-blocking line reader of a pipe."""

    def __init__(self, descriptor: int, early: bytes = b"") -> None:
        """Creates a line reader of a pipe, which becomes non-blocking. `early` has bytes read from the pipe before."""
        os.set_blocking(descriptor, False)
        self.descriptor = descriptor
        self.ended = False
        self._rest = early

    def waiting(self) -> list[bytes]:
        """Returns the lines that the pipe has now; an unfinished line follows later, at the pipe's end, or once it is
        too long."""
        while not self.ended:
            try:
                data = os.read(self.descriptor, 1 << 16)
            except BlockingIOError:
                break
            self._rest += data
            self.ended = not data
            if len(self._rest) > MOST_BYTES:
                break
        whole = self.ended or len(self._rest) > MOST_BYTES
        lines = self._rest.splitlines(keepends=True)
        self._rest = lines.pop() if lines and not whole and not lines[-1].endswith(b"\n") else b""
        return lines


def command(socket: Path, uid: int) -> list[str]:
    """Returns the sandbox broker's command line, for settings on standard input. `uid` may use it beside root."""
    allowed = ["--allow-uid", str(uid)] if uid else []
    return [sys.executable, "-I", "-m", "runtime.broker", "--settings", "-", "--socket", str(socket), *allowed]


class BrokerProcess:
    """The daemon's sandbox broker and its guard process: `start` before other threads, `watch` after dropping rights,
    `close` last."""

    def __init__(self, settings: BrokerSettings, socket: Path, program: Sequence[str]) -> None:
        self.socket = socket
        self._settings = settings
        self._program = tuple(program)
        self._guard: subprocess.Popen[bytes] | None = None
        self._thread: threading.Thread | None = None
        self._early = b""
        self._closing = False
        self._lock = threading.Lock()

    def start(self) -> str:
        """Starts the sandbox broker under its guard. Returns an empty string once it answers, else why it does not; the
        guard then keeps trying, unless the broker reports unusable settings."""
        self._guard = subprocess.Popen(
            [sys.executable, "-I", "-S", str(broker_guard.__file__), *self._program],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=ENVIRONMENT,
            cwd="/",
            start_new_session=True,
        )
        assert self._guard.stdin is not None
        try:
            self._guard.stdin.write(self._settings.model_dump_json().encode() + b"\n")
            self._guard.stdin.flush()
            return self._answer(self._guard)
        except BaseException:
            self.close()
            raise

    def watch(self, log: ChildLog, say: Callable[[str], None], lost: Callable[[], None]) -> None:
        """Starts a thread that logs the sandbox broker's output; it calls `say` for each end, `lost` when no other
        broker will start."""
        guard = self._guard
        assert guard is not None
        self._thread = threading.Thread(
            target=self._read_news, args=(guard, log, say, lost), name="broker-news", daemon=True
        )
        self._thread.start()

    def stop_news(self) -> None:
        """Stops reports about the sandbox broker, because their recipients are about to end."""
        with self._lock:
            self._closing = True

    def close(self) -> None:
        """Ends the sandbox broker and its guard, and waits for them."""
        self.stop_news()
        guard, self._guard = self._guard, None
        if guard is None:
            return
        assert guard.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            guard.stdin.close()
        try:
            guard.wait(GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            # Not permitted as another user; guard and broker then end by themselves.
            with contextlib.suppress(PermissionError):
                guard.kill()
                guard.wait()
        if self._thread is not None:
            self._thread.join(timeout=5)
        for pipe in (guard.stdout, guard.stderr):
            if pipe is not None and not (self._thread is not None and self._thread.is_alive()):
                pipe.close()

    def _answer(self, guard: subprocess.Popen[bytes]) -> str:
        assert guard.stdout is not None
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                ask(self.socket, seconds=2.0)
            except SandboxError as error:
                problem = str(error)
            else:
                return ""
            # Only polled: a line read here would be missing from the pipe later.
            if select.select([guard.stdout], [], [], 0.02)[0]:
                return self._first_line(guard) or problem
            if time.monotonic() > deadline:
                return problem

    def _first_line(self, guard: subprocess.Popen[bytes]) -> str:
        """Reads the sandbox broker's early output, to be logged later, and returns its last line."""
        assert guard.stderr is not None
        if select.select([guard.stderr], [], [], 1.0)[0]:
            self._early = os.read(guard.stderr.fileno(), 1 << 16)
        lines = self._early.decode(errors="replace").strip().splitlines()
        return _bare(lines[-1]) if lines else ""

    def _read_news(
        self, guard: subprocess.Popen[bytes], log: ChildLog, say: Callable[[str], None], lost: Callable[[], None]
    ) -> None:
        """Logs the sandbox broker's output and reports its ends, until both pipes of its guard end. Output is logged
        before the report of its end, as it was written."""
        assert guard.stdout is not None
        assert guard.stderr is not None
        memory = MemoryKills.seen_from(guard.pid)
        news, output = GuardLines(guard.stdout.fileno()), GuardLines(guard.stderr.fileno(), self._early)
        log.forget()
        while True:
            ends = news.waiting()
            for line in output.waiting():
                log.keep(line)
                if line.startswith(NEWS):
                    self._say(line.decode(errors="replace").removeprefix(NEWS.decode()).strip(), say)
            for line in ends:
                self._tell(BrokerEnd.model_validate_json(line), log, say, lost, no_memory=memory.more)
                memory = MemoryKills.seen_from(guard.pid)
            if open_ends := [pipe.descriptor for pipe in (news, output) if not pipe.ended]:
                select.select(open_ends, [], [])
            else:
                break
        with self._lock:
            if self._closing:
                return
            say("the broker's guard has ended, and the broker with it")
        lost()

    def _say(self, text: str, say: Callable[[str], None]) -> None:
        with self._lock:
            if not self._closing:
                say(text[:MOST_CHARS])

    def _tell(
        self, end: BrokerEnd, log: ChildLog, say: Callable[[str], None], lost: Callable[[], None], *, no_memory: bool
    ) -> None:
        self._say(end.describe(log.last_line(), no_memory=no_memory), say)
        if end.retry_seconds is None:
            lost()
