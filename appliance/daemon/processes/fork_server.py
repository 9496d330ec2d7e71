"""The fork server of workers, as the core sees it: a working one, and a spare that can replace it immediately.

Invariants: each is a child of the core, dies with the core, and can be waited for. A spare is forked from the working
one, so it shares the loaded libraries and their memory, and the core adopts it: meanwhile the core is the subreaper of
its process tree (PR_SET_CHILD_SUBREAPER).
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

from appliance.system import ending
from appliance.system.process_state import is_stopped

FORKSERVER = (sys.executable, "-I", "-m", "appliance.worker.forkserver")
SPARE_SECONDS = 60.0
"""Time limit for a spare to start, in seconds: usually milliseconds, more on a busy machine."""
LOOK_SECONDS = 1.0
"""Interval between checks meanwhile for a stopped fork server, in seconds."""
_PR_SET_CHILD_SUBREAPER, _PR_GET_CHILD_SUBREAPER = 36, 37
_MOST = 1 << 16
_ADOPTING = threading.Lock()


class ForkServer:
    """A process that forks workers, used by one thread. All methods except `end` may raise OSError if it has ended."""

    def __init__(self, pid: int, line: socket.socket, process: subprocess.Popen[bytes] | None = None) -> None:
        """Represents a running fork server of workers. `process` is None if it was adopted."""
        self.pid = pid
        self.line = line
        self._process = process

    @classmethod
    def begun(cls, nice: int) -> Self:
        """Starts a new fork server of workers, with no libraries loaded, in a session of its own with this priority."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            launcher = (sys.executable, "-I", "-S", str(ending.__file__), str(os.getpid()), str(nice))
            process = subprocess.Popen(
                [*launcher, *FORKSERVER, "--socket-fd", str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
            )
        return cls(process.pid, ours, process)

    def spare(self) -> ForkServer | None:
        """Forks a second fork server from this one, to replace it later; None if that fails."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with _adopting(), contextlib.suppress(OSError):
            with theirs:
                self.send({"spare_of": os.getpid()}, [theirs.fileno()])
            if self._comes(ours) and (said := ours.recv(_MOST)):
                return ForkServer(int(json.loads(said)["pid"]), ours)
        ours.close()
        return None

    def _comes(self, spare: socket.socket) -> bool:
        """Waits for the first message of a new spare fork server, or the end of its connection. False after
        `SPARE_SECONDS`, or if this fork server is stopped."""
        latest = time.monotonic() + SPARE_SECONDS
        while not select.select([spare], [], [], LOOK_SECONDS)[0]:
            if self.is_stopped or time.monotonic() > latest:
                return False
        return True

    def send(self, request: dict[str, Any], descriptors: list[int]) -> None:
        socket.send_fds(self.line, [json.dumps(request).encode()], descriptors)

    def reply(self) -> dict[str, Any] | None:
        """Waits for the fork server's next message and returns it; None if it has ended."""
        message = self.line.recv(_MOST)
        return json.loads(message) if message else None

    def says_something(self, seconds: float) -> bool:
        """Waits up to `seconds`; True if the fork server has sent a message, or has ended."""
        return bool(select.select([self.line], [], [], seconds)[0])

    @property
    def is_stopped(self) -> bool:
        """True if a signal stopped the fork server's process (SIGSTOP)."""
        return is_stopped(self.pid)

    def end(self) -> None:
        self.line.close()
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        else:
            os.kill(self.pid, signal.SIGKILL)  # not yet waited for, so the pid is not reused
            os.waitpid(self.pid, 0)


@contextlib.contextmanager
def _adopting() -> Iterator[None]:
    """Makes this process adopt orphans of its process tree inside the block."""
    libc, before = ctypes.CDLL(None), ctypes.c_int()
    with _ADOPTING:
        libc.prctl(_PR_GET_CHILD_SUBREAPER, ctypes.byref(before), 0, 0, 0)
        libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        try:
            yield
        finally:
            libc.prctl(_PR_SET_CHILD_SUBREAPER, before.value, 0, 0, 0)
