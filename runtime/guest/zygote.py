"""Fork server: parent of all processes that run user code; only loads modules, forks and reaps.

Invariants: it is forked before the first request is read, so no memory inherited by a child ever contained the code,
output or nonce of any session; and a child cannot outlive the sandbox whose first process the supervisor is.
"""

from __future__ import annotations

import _socket
import gc
import os
import struct

from runtime.guest import chance, child, filters
from runtime.guest.confine import Filter
from runtime.guest.process import SIGKILL, Process, ProcessParent, pipes

TYPE_CHECKING = False  # guards imports for type checkers: a guest does not load `typing`
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn

FORK, REAP = 0, 1
ORDER = struct.Struct("=Bi")
"""Order and process id; a fork order is sent with the three descriptors of `child.Ends`."""
ANSWER = struct.Struct("=ii")
"""Answer to a fork: zero and the new process id. Answer to a reap: the process id and its exit status."""
ENDS = struct.Struct("=3i")
MESSAGE_BYTES = 1 << 12
READY = b"ready"


class Zygote(ProcessParent):
    """Supervisor's connection to the fork server. Orders are answered in turn, one message each."""

    stops = True

    def __init__(
        self,
        *,
        memory_bytes: int,
        open_files: int,
        machine: str,
        modules: list[str],
        preload: list[str],
        not_for_it: tuple[int, ...],
    ) -> None:
        """Forks the fork server, which closes the descriptors in `not_for_it`, and waits until it has loaded all
        modules.

        Raises ImportError on failure.
        """
        self._line, theirs = _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_SEQPACKET)
        self.line = self._line.fileno()
        self._forking: list[tuple[child.Ends, Callable[[Process | None], None]]] = []
        self._reaping: dict[int, Callable[[int], None]] = {}
        if os.fork() == 0:
            try:
                self._line.close()
                for descriptor in not_for_it:
                    os.close(descriptor)
                addresses = chance.Addresses()
                confinement = _prepare(machine, modules, addresses)
                problem = child.load(["random", *preload])
                chance.take_clocks()
                child.bound_memory(memory_bytes)
                child.bound_files(open_files)
                theirs.send(problem.encode()[:MESSAGE_BYTES] or READY)
                if not problem:
                    addresses.watch()
                    _serve(theirs, confinement)
            except child.ForkedError:
                raise
            except BaseException:  # noqa: BLE001
                os._exit(71)
            os._exit(71)
        theirs.close()
        received = self._line.recv(MESSAGE_BYTES)
        if received != READY:
            raise ImportError(received.decode() or "the fork server ended during imports")

    def fork(self, done: Callable[[Process | None], None]) -> None:
        ours, theirs = pipes()
        self._line.sendmsg([ORDER.pack(FORK, 0)], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, ENDS.pack(*theirs))])
        for end in theirs:
            os.close(end)
        self._forking.append((ours, done))

    def reap(self, pid: int, done: Callable[[int], None]) -> None:
        os.kill(pid, SIGKILL)
        self._reaping[pid] = done
        self._line.send(ORDER.pack(REAP, pid))

    def receive(self) -> None:
        """Handles one answer of the fork server. Raises ConnectionError if the fork server has ended."""
        answer = self._line.recv(ANSWER.size)
        if not answer:
            raise ConnectionError("the fork server has ended")
        pid, number = ANSWER.unpack(answer)
        if pid:
            self._reaping.pop(pid)(number)
        else:
            ours, done = self._forking.pop(0)
            done(Process(number, ours))


def _prepare(machine: str, modules: list[str], addresses: chance.Addresses) -> Filter:
    """Keeps modules for imports in forked children; returns the seccomp filter that they cannot create themselves."""
    from runtime.guest import import_shelf  # here, to spare the supervisor its memory

    import_shelf.shelve(modules, addresses.unwatched)
    return Filter(filters.compute_only(machine))


def _serve(line: _socket.socket, confinement: Filter) -> NoReturn:
    gc.collect()
    gc.freeze()
    while True:
        data, passed, _, _ = line.recvmsg(ORDER.size, _socket.CMSG_SPACE(ENDS.size))
        if not data:
            os._exit(0)
        order, pid = ORDER.unpack(data)
        if order == REAP:
            line.send(ANSWER.pack(*os.waitpid(pid, 0)))
            continue
        ends: child.Ends = ENDS.unpack(passed[0][2])
        pid = os.fork()
        if pid == 0:
            raise child.ForkedError(ends, confinement.install)
        for end in ends:
            os.close(end)
        line.send(ANSWER.pack(0, pid))
