"""What forks workers, as the core holds it: one that works, and a spare that takes its place at once.

What always holds: each is a child of the core, the kernel ends it with the core, and it can be waited for. A spare is
forked from the one that works, so it has all that was loaded there and shares its memory, and the core adopts it: for
the moment that this takes, the core is the process that orphans of its tree are given to (PR_SET_CHILD_SUBREAPER).
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any, Self

from appliance.daemon.processes import launch
from appliance.system.ending import is_stopped

FORKSERVER = (sys.executable, "-I", "-m", "appliance.worker.forkserver")
SPARE_SECONDS = 60.0
"""That a spare may take to come: milliseconds, on a busy machine seconds."""
LOOK_SECONDS = 1.0
"""Between looks meanwhile whether a signal stopped what forks it."""
_PR_SET_CHILD_SUBREAPER, _PR_GET_CHILD_SUBREAPER = 36, 37
_MOST = 1 << 16
_ADOPTING = threading.Lock()


class ForkServer:
    """Belongs to one thread. Everything but `end` may raise OSError where the process has ended."""

    def __init__(self, pid: int, line: socket.socket, process: subprocess.Popen[bytes] | None = None) -> None:
        """`process` is it where it was started, and None where it was adopted."""
        self.pid = pid
        self.line = line
        self._process = process

    @classmethod
    def begun(cls) -> Self:
        """A new one, with nothing loaded."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            launcher = (sys.executable, "-I", "-S", str(launch.__file__), str(os.getpid()), "0")
            process = subprocess.Popen(
                [*launcher, *FORKSERVER, "--socket-fd", str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                process_group=0,
            )
        return cls(process.pid, ours, process)

    def spare(self) -> ForkServer | None:
        """Another one, forked from this one; None where none comes."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with _adopting(), contextlib.suppress(OSError):
            with theirs:
                self.send({"spare_of": os.getpid()}, [theirs.fileno()])
            if self._comes(ours) and (said := ours.recv(_MOST)):
                return ForkServer(int(json.loads(said)["pid"]), ours)
        ours.close()
        return None

    def _comes(self, spare: socket.socket) -> bool:
        """Waits for its first word, or the end of its line; not where what forks it is stopped at a look."""
        latest = time.monotonic() + SPARE_SECONDS
        while not select.select([spare], [], [], LOOK_SECONDS)[0]:
            if self.is_stopped or time.monotonic() > latest:
                return False
        return True

    def send(self, request: dict[str, Any], descriptors: list[int]) -> None:
        socket.send_fds(self.line, [json.dumps(request).encode()], descriptors)

    def reply(self) -> dict[str, Any] | None:
        """What it says next; None where it has ended."""
        message = self.line.recv(_MOST)
        return json.loads(message) if message else None

    def says_something(self, seconds: float) -> bool:
        """Waits until it does, or has ended."""
        return bool(select.select([self.line], [], [], seconds)[0])

    @property
    def is_stopped(self) -> bool:
        """Whether a signal stopped it."""
        return is_stopped(self.pid)

    def end(self) -> None:
        self.line.close()
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        else:
            os.kill(self.pid, signal.SIGKILL)  # a child that was not waited for: the number is nobody else's
            os.waitpid(self.pid, 0)


@contextlib.contextmanager
def _adopting() -> Iterator[None]:
    """Orphans below this process become its children meanwhile."""
    libc, before = ctypes.CDLL(None), ctypes.c_int()
    with _ADOPTING:
        libc.prctl(_PR_GET_CHILD_SUBREAPER, ctypes.byref(before), 0, 0, 0)
        libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        try:
            yield
        finally:
            libc.prctl(_PR_SET_CHILD_SUBREAPER, before.value, 0, 0, 0)
