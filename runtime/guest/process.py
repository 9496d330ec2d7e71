"""Is one process of a session as its supervisor sees it, and the pipes between them."""

from __future__ import annotations

import os

from runtime.guest import child

TYPE_CHECKING = False  # what it guards is for type checkers: a guest does not load `typing`
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol
else:
    Protocol = object

SIGKILL, SIGCONT, SIGSTOP, SIGURG, SIGSYS = 9, 18, 19, 23, 31
"""Of every Linux; `signal` imports `enum`, which costs a guest 0.9 MB."""


class Process:
    __slots__ = (
        "calls", "key", "nonce", "output", "pid", "printed", "received", "replies", "requests", "seed", "stopped",
        "unsent",
    )  # fmt: skip

    def __init__(self, pid: int, ends: child.Ends) -> None:
        self.pid = pid
        self.requests, self.replies, self.output = ends
        self.nonce = b""
        """Of the call in progress; empty between calls."""
        self.received, self.printed = bytearray(), bytearray()
        self.unsent = b""
        self.key, self.calls = b"", 0
        """What its answers begin with. The process is told the key before its first source."""
        self.seed = b""
        """For its next call, where there is a new one."""
        self.stopped = False

    def order(self, source: bytes) -> bytes:
        """Says what it is to be sent for its next call."""
        begin = b""
        if not self.key:
            begin = self.key = os.urandom(child.KEY_BYTES)
        self.calls += 1
        seed, self.seed = self.seed, b""
        kind = child.SEEDED if seed else child.PLAIN
        return begin + child.ORDER.pack(self.calls, 1 + len(seed) + len(source), kind) + seed + source

    @property
    def mark(self) -> bytes:
        """What the answer to the call in progress begins with."""
        return self.key + self.calls.to_bytes(child.CALL_BYTES, "big")

    def close(self) -> None:
        for descriptor in (self.requests, self.replies, self.output):
            os.close(descriptor)


def pipes() -> tuple[child.Ends, child.Ends]:
    """Makes the supervisor's ends, which do not block, and the child's."""
    made = [os.pipe() for _ in range(3)]
    (request_out, request_in), (reply_out, reply_in), (output_out, output_in) = made
    ours = (request_in, reply_out, output_out)
    for descriptor in ours:
        os.set_blocking(descriptor, False)
    return ours, (request_out, reply_in, output_in)


class ProcessParent(Protocol):
    """Is where processes come from. Both methods call back, now or when `receive` is called."""

    line: int = -1
    """A descriptor to poll for reading before `receive`; none if negative."""
    stops: bool = False
    """Whether its processes are stopped between calls."""

    def fork(self, done: Callable[[Process | None], None]) -> None:
        """Makes a new process, or None when there will be no more."""

    def reap(self, pid: int, done: Callable[[int], None]) -> None:
        """Kills a process; calls back with its status as of waitpid(2) once it has ended."""

    def receive(self) -> None:
        """Takes what has come in on the line."""
        return

    def tidy(self) -> None:
        """Reaps what else has become ours."""
        return
