"""The broker of a daemon's own, as the daemon sees it: a guard to end, a socket to use, and news of what happened.

What always holds: guard and broker are in a session of their own, so that Ctrl-C does not reach them before the worker
has ended; they end when this process ends. Nothing is written to a file before `watch`, for until then this process may
be root, and the folder another user's.
"""

from __future__ import annotations

import contextlib
import io
import os
import select
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from appliance.daemon import broker_guard
from appliance.daemon.child_log import ChildLog
from runtime.broker.client import ask
from runtime.errors import SandboxError
from runtime.settings import BrokerSettings

START_SECONDS = 30.0
MOST_CHARS = 600
GRACE_SECONDS = broker_guard.GRACE_SECONDS + 5.0
ENVIRONMENT = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8"}


class End(BaseModel):
    """What the guard says of a broker that has ended."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    code: int
    seconds: float
    retry_seconds: float | None

    def words(self, said: str) -> str:
        """For people. `said` is the broker's last line; one that was killed did not say why."""
        how = f"was killed by signal {-self.code}" if self.code < 0 else f"ended with status {self.code}"
        then = "is not started again" if self.retry_seconds is None else f"starts again in {self.retry_seconds:g} s"
        return f"the broker {how} after {self.seconds:.0f} s and {then}" + (
            f": {_bare(said)}" if said and self.code > 0 else ""
        )


def _bare(line: str) -> str:
    return line.removeprefix("broker: ")[:MOST_CHARS]


def command(socket: Path, uid: int) -> list[str]:
    """The broker's command line, for settings on its standard input. `uid` may use it beside root."""
    allowed = ["--allow-uid", str(uid)] if uid else []
    return [sys.executable, "-I", "-m", "runtime.broker", "--settings", "-", "--socket", str(socket), *allowed]


class BrokerProcess:
    """`start` while there is one thread, `watch` once rights are given up, `close` last."""

    def __init__(self, settings: BrokerSettings, socket: Path, program: Sequence[str]) -> None:
        self.socket = socket
        self._settings = settings
        self._program = tuple(program)
        self._guard: subprocess.Popen[bytes] | None = None
        self._threads: list[threading.Thread] = []
        self._early = b""
        self._closing = False
        self._lock = threading.Lock()

    def start(self) -> str:
        """Returns when the broker answers, with nothing to say, or with why it does not: the guard then goes on trying,
        unless the broker says that it cannot work."""
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
        """Keeps what the broker says, and tells `say` of each end, `lost` when there will be no other broker."""
        guard = self._guard
        assert guard is not None
        self._threads = [
            threading.Thread(target=self._keep, args=(guard, log), name="broker-log", daemon=True),
            threading.Thread(target=self._hear, args=(guard, log, say, lost), name="broker-news", daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    def hush(self) -> None:
        """No more news: those who would hear them are about to go."""
        with self._lock:
            self._closing = True

    def close(self) -> None:
        """Ends broker and guard, and returns when they have."""
        self.hush()
        guard, self._guard = self._guard, None
        if guard is None:
            return
        assert guard.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            guard.stdin.close()
        try:
            guard.wait(GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            # As another user we may not; it then ends by itself when it can, and the broker with it.
            with contextlib.suppress(PermissionError):
                guard.kill()
                guard.wait()
        for thread in self._threads:
            thread.join(timeout=5)
        for pipe in (guard.stdout, guard.stderr):
            if pipe is not None and not any(thread.is_alive() for thread in self._threads):
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
            # What is read here is no longer in the pipe: the guard's line is looked at, not taken.
            if select.select([guard.stdout], [], [], 0.02)[0]:
                return self._first_words(guard) or problem
            if time.monotonic() > deadline:
                return problem

    def _first_words(self, guard: subprocess.Popen[bytes]) -> str:
        """The last line of what the broker has said so far; the log gets it later."""
        assert guard.stderr is not None
        if select.select([guard.stderr], [], [], 1.0)[0]:
            self._early = os.read(guard.stderr.fileno(), 1 << 16)
        lines = self._early.decode(errors="replace").strip().splitlines()
        return _bare(lines[-1]) if lines else ""

    def _keep(self, guard: subprocess.Popen[bytes], log: ChildLog) -> None:
        assert guard.stderr is not None
        log.drain(io.BytesIO(self._early))
        log.drain(guard.stderr)

    def _hear(
        self, guard: subprocess.Popen[bytes], log: ChildLog, say: Callable[[str], None], lost: Callable[[], None]
    ) -> None:
        assert guard.stdout is not None
        for line in guard.stdout:
            end = End.model_validate_json(line)
            with self._lock:
                if self._closing:
                    continue
                say(end.words(log.last_words()))
            if end.retry_seconds is None:
                lost()
        with self._lock:
            if self._closing:
                return
            say("the broker's guard has ended, and the broker with it")
        lost()
