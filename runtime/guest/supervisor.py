"""Stands between the host and the processes that run user code; runs none itself.

It has children forked ahead of need, hands each the requests of its session, gathers what the child printed, and tells
the host how each call ended. What always holds: a child speaks only for the call it was given, once; a child that says
anything else, or that ended, is replaced by nothing: its session is told so, and the host decides. No child can make it
wait: it reads and writes only what is ready.
"""

from __future__ import annotations

import os
import select
import signal
from collections import deque
from dataclasses import dataclass, field

from runtime.guest import child, confine, errands, seeds, wire
from runtime.guest.wire import Kind, Op
from runtime.guest.zygote import Zygote


@dataclass
class Process:
    """One child as its supervisor sees it."""

    pid: int
    requests: int
    replies: int
    output: int
    nonce: bytes = b""
    """Of the call in progress; empty between calls."""
    said: bytearray = field(default_factory=bytearray)
    printed: bytearray = field(default_factory=bytearray)
    unsent: memoryview = field(default_factory=lambda: memoryview(b""))


class Supervisor:
    def __init__(
        self,
        source: int,
        sink: int,
        *,
        zygote: Zygote,
        confined: bool,
        ahead: int,
        output_bytes: int,
    ) -> None:
        self._source, self._sink, self._zygote = source, sink, zygote
        self._confined, self._ahead, self._output_bytes = confined, ahead, output_bytes
        self._idle: deque[Process] = deque()
        self._sessions: dict[int, Process] = {}
        self._by_descriptor: dict[int, tuple[int, Process]] = {}
        self._poll = select.poll()
        self._seed = b""
        """What new processes are seeded with; empty: as every other guest."""

    def serve(self) -> None:
        """Says READY once the first processes are forked, then answers until the host closes the pipe."""
        while len(self._idle) < self._ahead:
            self._idle.append(self._fork())
        self._answer(wire.NO_NONCE, Kind.READY)
        requests = wire.Requests()
        self._poll.register(self._source, select.POLLIN)
        while True:
            hungry = len(self._idle) < self._ahead
            ready = self._poll.poll(0 if hungry else None)
            if not ready and hungry:
                self._idle.append(self._fork())
            for descriptor, _ in ready:
                if descriptor == self._source:
                    data = os.read(self._source, 1 << 16)
                    if not data:
                        return
                    for request in requests.feed(data):
                        self._handle(request)
                elif descriptor in self._by_descriptor:
                    session, process = self._by_descriptor[descriptor]
                    if descriptor == process.output:
                        self._gather(session, process)
                    elif descriptor == process.replies:
                        self._listen(session, process)
                    else:
                        self._feed(session, process)

    def _answer(self, nonce: bytes, kind: Kind, output: bytes = b"", report: bytes = b"") -> None:
        view = memoryview(wire.pack_reply(nonce, kind, output, report))
        while view:
            view = view[os.write(self._sink, view) :]

    def _handle(self, request: wire.Request) -> None:
        session = request.session
        if request.op == Op.OPEN:
            process = self._idle.popleft() if self._idle else self._fork()
            if not self._confined:
                self._ahead = 0
            self._sessions[session] = process
            for descriptor in (process.replies, process.output):
                self._watch(descriptor, session, process, select.POLLIN)
            self._answer(request.nonce, Kind.READY)
        elif request.op == Op.RUN:
            self._run(session, request)
        elif request.op in (Op.DROP, Op.KILL):
            if session in self._sessions:
                self._end(session, Kind.KILLED)
        elif request.op == Op.PING:
            self._answer(request.nonce, Kind.READY)
        elif request.op == Op.RESEED:
            self._reseed(request.body)
            self._answer(request.nonce, Kind.READY)
        else:
            kind, output, report = errands.answer(request)
            self._answer(request.nonce, kind, output, report)

    def _run(self, session: int, request: wire.Request) -> None:
        process = self._sessions.get(session)
        if process is None:
            self._answer(request.nonce, Kind.DIED)
            return
        process.nonce = request.nonce
        self._queue(process, child.RUN, request.nonce, request.body)
        self._feed(session, process)

    def _reseed(self, value: bytes) -> None:
        """Every process is told, those that wait included; each takes it before what it is sent later."""
        self._seed = value
        seeds.seed(value)
        for process in [*self._idle, *self._sessions.values()]:
            self._queue(process, child.SEED, wire.NO_NONCE, value)

    def _queue(self, process: Process, order: int, nonce: bytes, body: bytes) -> None:
        frame = child.HEADER.pack(len(body), nonce, order) + body
        process.unsent = memoryview(bytes(process.unsent) + frame)

    def _feed(self, session: int, process: Process) -> None:
        """Hands over as much of the request as the child takes now; one that takes nothing delays nobody else."""
        try:
            while process.unsent:
                process.unsent = process.unsent[os.write(process.requests, process.unsent) :]
        except BlockingIOError:
            self._watch(process.requests, session, process, select.POLLOUT)
            return
        except BrokenPipeError:
            self._end(session, Kind.DIED)
            return
        self._ignore(process.requests)

    def _gather(self, session: int, process: Process) -> None:
        """Takes what was printed, up to the cap; one byte more ends the process."""
        while True:
            try:
                data = os.read(process.output, 1 << 16)
            except BlockingIOError:
                return
            if not data:
                self._ignore(process.output)
                return
            process.printed += data
            if len(process.printed) > self._output_bytes:
                del process.printed[self._output_bytes :]
                self._end(session, Kind.OUTPUT)
                return

    def _listen(self, session: int, process: Process) -> None:
        try:
            data = os.read(process.replies, 1 << 16)
        except BlockingIOError:
            return
        if not data:
            self._gather(session, process)
            if self._sessions.get(session) is process:
                self._end(session, Kind.DIED)
            return
        process.said += data
        if len(process.said) < child.HEADER.size:
            return
        size, nonce, kind = child.HEADER.unpack_from(process.said)
        end = child.HEADER.size + size
        if nonce != process.nonce or not process.nonce or kind not in wire.FROM_USER_PROCESS or size > 1 << 14:
            self._end(session, Kind.DIED)
            return
        if len(process.said) < end:
            return
        if len(process.said) > end:
            self._end(session, Kind.DIED)
            return
        report = bytes(process.said[child.HEADER.size : end])
        process.said.clear()
        self._gather(session, process)
        if self._sessions.get(session) is not process:
            return
        output = bytes(process.printed)
        process.printed.clear()
        process.nonce = b""
        self._answer(nonce, Kind(kind), output, report)

    def _watch(self, descriptor: int, session: int, process: Process, events: int) -> None:
        self._by_descriptor[descriptor] = (session, process)
        self._poll.register(descriptor, events)

    def _ignore(self, descriptor: int) -> None:
        """Stays open: closed before its process has ended, its number would be another session's next pipe."""
        if self._by_descriptor.pop(descriptor, None) is not None:
            self._poll.unregister(descriptor)

    def _end(self, session: int, kind: Kind) -> None:
        """Kills the process, answers its call in progress, and frees what it had."""
        process = self._sessions.pop(session)
        os.kill(process.pid, signal.SIGKILL)
        status = self._zygote.reap(process.pid)
        if kind == Kind.DIED and os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGSYS:
            kind = Kind.DENIED
        for descriptor in (process.requests, process.replies, process.output):
            self._ignore(descriptor)
            os.close(descriptor)
        if process.nonce:
            self._answer(process.nonce, kind, bytes(process.printed))

    def _fork(self) -> Process:
        (request_in, request_out), (reply_in, reply_out), (output_in, output_out) = os.pipe(), os.pipe(), os.pipe()
        pid = self._zygote.fork(child.Pipes(request_in, reply_out, output_out))
        for descriptor in (request_in, reply_out, output_out):
            os.close(descriptor)
        for descriptor in (request_out, reply_in, output_in):
            os.set_blocking(descriptor, False)
        process = Process(pid, request_out, reply_in, output_in)
        if self._seed:
            self._queue(process, child.SEED, wire.NO_NONCE, self._seed)
        return process


def run(
    source: int, sink: int, *, confined: bool, ahead: int, output_bytes: int, memory_bytes: int, machine: str
) -> None:
    """Hides itself from the processes that will be started, has their parent forked, and serves."""
    confine.hide()
    zygote = Zygote(confined=confined, memory_bytes=memory_bytes, machine=machine, not_for_it=(source, sink))
    Supervisor(source, sink, zygote=zygote, confined=confined, ahead=ahead, output_bytes=output_bytes).serve()
