"""Supervises the processes that run user code on behalf of the host; runs none itself.

It keeps children forked ahead of demand, passes each the requests of its session, collects printed output, and reports
each call's outcome to the host. Invariants: a child speaks only for its current call, once; a child that says anything
else, or that ended, is not replaced: its session gets an answer, and the host decides; no process serves two sessions.
No child can block it: it reads and writes only what is ready.
"""

from __future__ import annotations

import os
import select
import time

from runtime.guest import child, frames, host_ops, kinds, ops, seeds
from runtime.guest.process import SIGCONT, SIGSTOP, SIGSYS, SIGURG
from runtime.guest.report import REPORT_BYTES

TYPE_CHECKING = False  # guards imports for type checkers: a guest does not load `typing`
if TYPE_CHECKING:
    from runtime.guest.process import Process, ProcessParent

READ_BYTES = 1 << 16
AWAKE_SECONDS = 0.01
"""Delay before an idle process is stopped, in seconds: stopping and waking costs a seventh of a call."""
MOST_FORKING = 4
"""Most concurrent fork orders; each holds descriptors."""


class Supervisor:
    def __init__(self, parent: ProcessParent, *, ahead: int, most_ahead: int, output_bytes: int) -> None:
        """Creates a supervisor of session processes. Forks `ahead` idle processes now, and doubles that number, up to
        `most_ahead`, whenever they prove too few."""
        self._parent = parent
        self._sink = -1
        self._ahead, self._most_ahead, self._output_bytes = ahead, most_ahead, output_bytes
        self._idle: list[Process] = []
        self._forking = 0
        self._opening: dict[int, bytes] = {}
        """Sessions waiting for a process, with the nonces of their requests."""
        self._sessions: dict[int, Process] = {}
        self._by_descriptor: dict[int, tuple[int, Process]] = {}
        self._gathered: set[int] = set()
        """Output descriptors read since the last poll, whose poll result is outdated."""
        self._awake: dict[int, float] = {}
        """Sessions whose idle process is to be stopped, with the time, earliest first."""
        self._poll = select.poll()
        self._seed = b""
        """Seed of new processes; empty means the default."""
        self._stock()
        while self._forking:
            parent.receive()

    def serve(self, source: int, sink: int) -> None:
        """Sends READY, then answers the host's requests until the host closes the pipe."""
        self._sink = sink
        self._answer(frames.NO_NONCE, kinds.READY)
        requests = frames.FrameReader(frames.REQUEST)
        self._poll.register(source, select.POLLIN)
        if self._parent.line >= 0:
            self._poll.register(self._parent.line, select.POLLIN)
        while True:
            events = self._poll.poll(self._stop_those_who_rest())
            self._gathered.clear()
            for descriptor, _ in events:
                if descriptor == source:
                    data = os.read(source, READ_BYTES)
                    if not data:
                        return
                    for (_, nonce, op, session), body in requests.feed(data):
                        self._handle(nonce, op, session, body)
                elif descriptor == self._parent.line:
                    self._parent.receive()
                elif descriptor in self._by_descriptor:
                    session, process = self._by_descriptor[descriptor]
                    if descriptor == process.output:
                        if descriptor not in self._gathered:
                            self._gather(session, process)
                    elif descriptor == process.replies:
                        self._listen(session, process)
                    else:
                        self._feed(session, process)
            self._parent.tidy()

    def _answer(self, nonce: bytes, kind: int, output: bytes = b"", report: bytes = b"") -> None:
        frames.write_all(self._sink, frames.pack_reply(nonce, kind, output, report))

    def _handle(self, nonce: bytes, op: int, session: int, body: bytes) -> None:
        if op == ops.RUN:
            self._run(session, nonce, body)
        elif op == ops.OPEN:
            self._open(session, nonce)
        elif op in (ops.DROP, ops.KILL):
            self._drop(session)
        elif op == ops.WARN:
            self._warn(session)
        elif op == ops.PING:
            self._answer(nonce, kinds.READY)
        elif op == ops.SEED and session in self._sessions:
            self._sessions[session].seed = body
            self._answer(nonce, kinds.READY)
        elif op in (ops.RESEED, ops.SEED):
            self._reseed(body)
            self._answer(nonce, kinds.READY)
        else:
            self._answer(nonce, *host_ops.answer(op, body))

    def _warn(self, session: int) -> None:
        try:
            if session in self._sessions:
                os.kill(self._sessions[session].pid, SIGURG)
        except ProcessLookupError:  # reaped, but its children hold its pipes open
            return

    def begin(self, session: int) -> None:
        """Assigns an idle process to the session before any request."""
        self._take(session, self._idle.pop())

    def _open(self, session: int, nonce: bytes) -> None:
        if session in self._sessions:
            self._answer(nonce, kinds.READY)
            return
        if self._idle:
            self._settle(session, nonce, self._idle.pop())
        else:
            self._ahead = min(max(1, 2 * self._ahead), self._most_ahead)
            self._opening[session] = nonce
        self._stock()

    def _stock(self) -> None:
        """Requests forks of processes for waiting sessions, and ahead of demand."""
        while self._forking < MOST_FORKING and len(self._idle) + self._forking < len(self._opening) + self._ahead:
            self._forking += 1
            self._parent.fork(self._forked)

    def _forked(self, process: Process | None) -> None:
        self._forking -= 1
        if process is None:
            self._ahead = self._most_ahead = 0
            for nonce in self._opening.values():
                self._answer(nonce, kinds.DIED)
            self._opening.clear()
            return
        if self._seed:
            process.seed = seeds.mixed(self._seed, process.pid)
        if self._opening:
            session = next(iter(self._opening))
            self._settle(session, self._opening.pop(session), process)
        else:
            self._idle.append(process)
        self._stock()

    def _settle(self, session: int, nonce: bytes, process: Process) -> None:
        self._take(session, process)
        self._answer(nonce, kinds.READY)

    def _take(self, session: int, process: Process) -> None:
        self._sessions[session] = process
        for descriptor in (process.replies, process.output):
            self._watch(descriptor, session, process, select.POLLIN)

    def _drop(self, session: int) -> None:
        nonce = self._opening.pop(session, None)
        if nonce is not None:
            self._answer(nonce, kinds.KILLED)
        elif session in self._sessions:
            self._gather(session, self._sessions[session])
            if session in self._sessions:  # not ended for its output
                self._end(session, kinds.KILLED)

    def _run(self, session: int, nonce: bytes, body: bytes) -> None:
        process = self._sessions.get(session)
        if process is None:
            self._answer(nonce, kinds.DIED)
            return
        self._awake.pop(session, None)
        process.nonce = nonce
        process.unsent += process.order(body)
        self._feed(session, process)
        if process.stopped and self._sessions.get(session) is process:  # else it was ended, and may be reaped already
            process.stopped = False
            os.kill(process.pid, SIGCONT)

    def _reseed(self, value: bytes) -> None:
        """Gives every process, including idle ones, a new random seed for its next call."""
        self._seed = value
        for process in [*self._idle, *self._sessions.values()]:
            process.seed = seeds.mixed(value, process.pid)

    def _feed(self, session: int, process: Process) -> None:
        """Writes as much of a session's request as its process accepts now; a stalled one delays no other."""
        view = memoryview(process.unsent)
        try:
            while view:
                view = view[os.write(process.requests, view) :]
        except BlockingIOError:
            process.unsent = bytes(view)
            self._watch(process.requests, session, process, select.POLLOUT)
            return
        except BrokenPipeError:
            self._end(session, kinds.DIED)
            return
        process.unsent = b""
        self._ignore(process.requests)

    def _gather(self, session: int, process: Process) -> None:
        """Collects the output that a session's process printed, up to the cap; one byte more ends the process."""
        while True:
            try:
                data = os.read(process.output, READ_BYTES)
            except BlockingIOError:
                return
            if not data:
                self._ignore(process.output)
                return
            process.printed += data
            if len(process.printed) > self._output_bytes:
                del process.printed[self._output_bytes :]
                self._end(session, kinds.OUTPUT)
                return
            if len(data) < READ_BYTES:
                return  # pipe drained: saves a system call

    def _listen(self, session: int, process: Process) -> None:
        try:
            data = os.read(process.replies, READ_BYTES)
        except BlockingIOError:
            return
        if not data:
            self._gather(session, process)
            if self._sessions.get(session) is process:
                self._end(session, kinds.DIED)
            return
        process.received += data
        mark = process.mark
        begin = len(mark) + child.CLAIM.size
        if len(process.received) < begin:
            return
        size, kind = child.CLAIM.unpack_from(process.received, len(mark))
        end = begin + size
        asked = process.nonce and process.received.startswith(mark)
        forged = not asked or kind not in kinds.FROM_USER_PROCESS
        if forged or size > REPORT_BYTES or len(process.received) > end:
            self._end(session, kinds.DIED)
            return
        if len(process.received) < end:
            return
        report = bytes(process.received[begin:end])
        process.received.clear()
        self._gather(session, process)
        self._gathered.add(process.output)
        if self._sessions.get(session) is not process:
            return
        output = bytes(process.printed)
        process.printed.clear()
        nonce, process.nonce = process.nonce, b""
        self._answer(nonce, kind, output, report)
        if self._parent.stops:
            self._awake[session] = time.monotonic() + AWAKE_SECONDS

    def _stop_those_who_rest(self) -> int | None:
        """Stops each process idle since its answer, because nobody waits for its background work.

        Returns the milliseconds until the next is due; None if there is none.
        """
        while self._awake:
            session, due = next(iter(self._awake.items()))
            left = due - time.monotonic()
            if left > 0:
                return int(1000 * left) + 1
            del self._awake[session]
            process = self._sessions[session]
            process.stopped = True
            os.kill(process.pid, SIGSTOP)
        return None

    def _watch(self, descriptor: int, session: int, process: Process, events: int) -> None:
        self._by_descriptor[descriptor] = (session, process)
        self._poll.register(descriptor, events)

    def _ignore(self, descriptor: int) -> None:
        """Stops polling a descriptor but keeps it open: if closed before its process ended, its number could be reused
        by another session's pipe."""
        if self._by_descriptor.pop(descriptor, None) is not None:
            self._poll.unregister(descriptor)

    def _end(self, session: int, kind: int) -> None:
        """Kills a session's process and frees its resources; its running call is answered once it has ended."""
        process = self._sessions.pop(session)
        self._awake.pop(session, None)
        for descriptor in (process.requests, process.replies, process.output):
            self._ignore(descriptor)

        def reaped(status: int) -> None:
            process.close()
            if process.nonce:
                denied = kind == kinds.DIED and os.WIFSIGNALED(status) and os.WTERMSIG(status) == SIGSYS
                report = kinds.EXITED if kind == kinds.DIED and os.WIFEXITED(status) else b""
                self._answer(process.nonce, kinds.DENIED if denied else kind, bytes(process.printed), report)

        self._parent.reap(process.pid, reaped)
