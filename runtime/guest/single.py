"""Only process of a single-session sandbox.

Invariants: it is forked before the supervisor reads a request, so its memory never contained another call's nonce. It
is never replaced.
"""

from __future__ import annotations

import os

from runtime.guest import child, users
from runtime.guest.process import SIGKILL, Process, ProcessParent, pipes

TYPE_CHECKING = False  # guards imports for type checkers: a guest does not load `typing`
if TYPE_CHECKING:
    from collections.abc import Callable

READY = b"ready"


class SingleProcess(ProcessParent):
    def __init__(self, *, memory_bytes: int, preload: list[str]) -> None:
        """Forks the sandbox's only process and waits until it has imported `preload`. Raises ImportError on failure."""
        ours, theirs = pipes()
        pid = os.fork()
        if pid == 0:
            try:
                users.drop()
                problem = child.load(["random", *preload])
                child.bound_memory(memory_bytes)
                os.write(theirs[1], problem.encode() or READY)
            except BaseException:  # noqa: BLE001
                os._exit(70)
            if not problem:
                raise child.ForkedError(theirs)
            os._exit(70)
        for end in theirs:
            os.close(end)
        os.set_blocking(ours[1], True)
        received = os.read(ours[1], 1 << 12)
        os.set_blocking(ours[1], False)
        if received != READY:
            raise ImportError(received.decode() or "the process ended during imports")
        self._process: Process | None = Process(pid, ours)
        self._pid, self._status = pid, -1
        """Process id and status; the status is set once it has been reaped."""

    def fork(self, done: Callable[[Process | None], None]) -> None:
        """Passes the sandbox's only process to the callback, once; later None."""
        process, self._process = self._process, None
        done(process)

    def reap(self, pid: int, done: Callable[[int], None]) -> None:
        if self._status < 0:
            os.kill(pid, SIGKILL)
            _, self._status = os.waitpid(pid, 0)
        done(self._status)

    def tidy(self) -> None:
        """Reaps orphaned processes, which belong to the first process of the sandbox."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid == self._pid:
                self._status = status
