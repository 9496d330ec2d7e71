"""One worker process as the host sees it: started, asked, watched by the clock, killed with whatever it started."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import verifiers
from verifiers.workers.frames import FrameError, Frames, encode

READ = 1 << 20
ROOT = Path(verifiers.__file__).resolve().parents[1]
ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "PYTHONNOUSERSITE": "1", "PYTHONHASHSEED": "0"}
"""All that the worker sees of the environment, besides where its own code lies."""

Clock = Callable[[], float]


class WorkerLost(Exception):
    """The worker did not answer: `kind` is `timeout` or `died`, `cpu` the seconds it computed since its last reply."""

    def __init__(self, kind: str, message: str, cpu: float = 0.0) -> None:
        super().__init__(message)
        self.kind = kind
        self.cpu = cpu


class WorkerProcess:
    """Starts on construction. Must be constructed in a thread that lives as long as the worker should (PDEATHSIG)."""

    def __init__(self, memory_mib: int) -> None:
        request_end, self._requests = os.pipe()
        self._replies, reply_end = os.pipe()
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed in `kill`
        command = [sys.executable, "-B", "-P", "-m", "verifiers.workers.worker"]
        arguments = [str(number) for number in (request_end, reply_end, os.getpid(), memory_mib)]
        try:
            self._process = subprocess.Popen(
                [*command, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=self._errors,
                pass_fds=(request_end, reply_end),
                cwd="/",
                env={**ENVIRONMENT, "PYTHONPATH": str(ROOT)},
                start_new_session=True,
            )
        except OSError:
            os.close(self._requests)
            os.close(self._replies)
            self._errors.close()
            raise
        finally:
            os.close(request_end)
            os.close(reply_end)
        os.set_blocking(self._requests, False)
        self._frames = Frames()
        self._cpu = 0.0
        self.used = False
        """Whether it has been asked anything: a fresh worker owes nothing to earlier items."""

    @property
    def pid(self) -> int:
        return self._process.pid

    def ask(self, message: dict[str, Any], deadline: float, clock: Clock = time.monotonic) -> None:
        """Sends one batch. Raises WorkerLost."""
        self.used = True
        data = memoryview(encode(message))
        try:
            while data:
                _, ready, _ = select.select([], [self._requests], [], max(0.0, deadline - clock()))
                if not ready:
                    raise WorkerLost("timeout", "the worker does not read")
                data = data[os.write(self._requests, data) :]
        except BrokenPipeError:
            raise self._death() from None

    def receive(self, deadline: float, clock: Clock = time.monotonic) -> dict[str, Any]:
        """The next message. Raises WorkerLost when none comes in time, or none can come any more."""
        while True:
            try:
                message = self._frames.next()
            except FrameError as error:
                raise WorkerLost("died", str(error)) from error
            if message is not None:
                self._cpu = message.get("cpu", self._cpu)
                return dict(message)
            ready, _, _ = select.select([self._replies], [], [], max(0.0, deadline - clock()))
            if not ready:
                raise WorkerLost("timeout", "no answer in time", max(0.0, self._cpu_now() - self._cpu))
            data = os.read(self._replies, READ)
            if not data:
                raise self._death()
            self._frames.feed(data)

    def kill(self) -> None:
        """Ends the worker and everything in its process group, at once. Killing twice is fine."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        if not self._errors.closed:
            os.close(self._requests)
            os.close(self._replies)
            self._errors.close()

    def _cpu_now(self) -> float:
        """Processor seconds that the worker has used, from proc(5)."""
        try:
            fields = Path(f"/proc/{self.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        except OSError:
            return 0.0
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def _death(self) -> WorkerLost:
        try:
            code = self._process.wait(timeout=1)
        except subprocess.TimeoutExpired:
            return WorkerLost("died", "the worker closed its pipe")
        self._errors.seek(0)
        last = self._errors.read()[-300:].decode(errors="replace").strip().splitlines()[-1:]
        how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        kind = "cpu" if code == -signal.SIGXCPU else "died"
        return WorkerLost(kind, ": ".join(["the worker died with " + how, *last]))
