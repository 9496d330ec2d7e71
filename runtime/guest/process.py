"""Session process as its supervisor sees it, and the pipes between them."""

from __future__ import annotations

import os

from runtime.guest import child

TYPE_CHECKING = False  # guards imports for type checkers: a guest does not load `typing`
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol
else:
    Protocol = object

SIGKILL, SIGCONT, SIGSTOP, SIGURG, SIGSYS = 9, 18, 19, 23, 31
"""Signal numbers of every Linux; `signal` imports `enum`, which costs a guest 0.9 MB."""


class Process:
    __slots__ = (
        "calls", "key", "nonce", "output", "pid", "printed", "received", "replies", "requests", "seed", "stopped",
        "unsent",
    )  # fmt: skip

    def __init__(self, pid: int, ends: child.Ends) -> None:
        self.pid = pid
        self.requests, self.replies, self.output = ends
        self.nonce = b""
        """Nonce of the running call; empty between calls."""
        self.received, self.printed = bytearray(), bytearray()
        self.unsent = b""
        self.key, self.calls = b"", 0
        """Prefix of its answers. The process receives the key before its first source."""
        self.seed = b""
        """New seed for its next call, if any."""
        self.stopped = False

    def order(self, source: bytes) -> bytes:
        """Returns the bytes that order the process to execute this source as its next call."""
        begin = b""
        if not self.key:
            begin = self.key = os.urandom(child.KEY_BYTES)
        self.calls += 1
        seed, self.seed = self.seed, b""
        kind = child.SEEDED if seed else child.PLAIN
        return begin + child.ORDER.pack(self.calls, 1 + len(seed) + len(source), kind) + seed + source

    @property
    def mark(self) -> bytes:
        """Prefix that the process's answer to the running call must have."""
        return self.key + self.calls.to_bytes(child.CALL_BYTES, "big")

    def close(self) -> None:
        for descriptor in (self.requests, self.replies, self.output):
            os.close(descriptor)


def pipes() -> tuple[child.Ends, child.Ends]:
    """Creates pipes between supervisor and child; returns the supervisor's non-blocking ends, then the child's."""
    made = [os.pipe() for _ in range(3)]
    (request_out, request_in), (reply_out, reply_in), (output_out, output_in) = made
    ours = (request_in, reply_out, output_out)
    for descriptor in ours:
        os.set_blocking(descriptor, False)
    return ours, (request_out, reply_in, output_in)


class ProcessParent(Protocol):
    """Source of processes for a supervisor. `fork` and `reap` call back, immediately or during `receive`."""

    line: int = -1
    """Descriptor to poll for reading before `receive`; none if negative."""
    stops: bool = False
    """True if its processes are stopped between calls."""

    def fork(self, done: Callable[[Process | None], None]) -> None:
        """Forks a session process and passes it to the callback, or None if there will be no more."""

    def reap(self, pid: int, done: Callable[[int], None]) -> None:
        """Kills a process; calls back with its waitpid(2) status once it has ended."""

    def receive(self) -> None:
        """Reads an answer to an earlier `fork` or `reap` from `line` and calls back; does nothing without a `line`.
        Raises ConnectionError if the fork server has ended."""
        return

    def tidy(self) -> None:
        """Reaps orphaned processes that this one adopted."""
        return
