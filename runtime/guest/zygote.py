"""The parent of all processes that run user code; it only forks and reaps.

What always holds: it is forked before the first request is read, so no memory that a child gets ever held the code, the
output or the nonce of any session; and a child cannot outlive the sandbox whose first process the supervisor is.
"""

from __future__ import annotations

import _socket
import gc
import os
import struct
from typing import NoReturn

from runtime.guest import child

FORK, REAP = 0, 1
ORDER = struct.Struct("=Bi")
"""What to do, and to which process; a fork comes with the three ends of `child.Pipes`."""
ANSWER = struct.Struct("=i")
"""The number of the new process, or the status in which the old one ended."""
ENDS = struct.Struct("=3i")


class Zygote:
    """The supervisor's handle on it."""

    def __init__(self, *, confined: bool, memory_bytes: int, machine: str, not_for_it: tuple[int, ...]) -> None:
        """Forks it, without the descriptors named in `not_for_it`."""
        self._line, theirs = _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_SEQPACKET)
        gc.freeze()
        if os.fork() == 0:
            try:
                self._line.close()
                for descriptor in not_for_it:
                    os.close(descriptor)
                _serve(theirs, confined=confined, memory_bytes=memory_bytes, machine=machine)
            finally:
                os._exit(71)
        theirs.close()

    def fork(self, pipes: child.Pipes) -> int:
        """The number of a new child, which has these ends. Raises ConnectionError when there is no zygote any more."""
        return self._ask(FORK, 0, [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, ENDS.pack(*pipes))])

    def reap(self, pid: int) -> int:
        """Waits for the end of a child; its status as of waitpid(2)."""
        return self._ask(REAP, pid, [])

    def _ask(self, order: int, pid: int, passed: list[tuple[int, int, bytes]]) -> int:
        self._line.sendmsg([ORDER.pack(order, pid)], passed)
        answer = self._line.recv(ANSWER.size)
        if not answer:
            raise ConnectionError("the zygote has ended")
        number: int = ANSWER.unpack(answer)[0]
        return number


def _serve(line: _socket.socket, *, confined: bool, memory_bytes: int, machine: str) -> NoReturn:
    while True:
        data, passed, _, _ = line.recvmsg(ORDER.size, _socket.CMSG_SPACE(ENDS.size))
        if not data:
            os._exit(0)
        order, pid = ORDER.unpack(data)
        if order == REAP:
            _, status = os.waitpid(pid, 0)
            line.send(ANSWER.pack(status))
            continue
        pipes = child.Pipes(*ENDS.unpack(passed[0][2]))
        pid = os.fork()
        if pid == 0:
            try:
                child.live(pipes, confined=confined, memory_bytes=memory_bytes, machine=machine)
            finally:
                os._exit(70)
        for end in pipes:
            os.close(end)
        line.send(ANSWER.pack(pid))
