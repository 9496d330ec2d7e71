"""The fork server (zygote) of the text workers: imports their packages once and forks each worker from itself.

Invariants: hostile text is never parsed here, only forwarded to a worker byte for byte; an item that exceeds its time
limit is killed with its worker; the end of a worker is reported once, after all its replies. A fork takes about 10 ms
where a start with imports would take a second, so workers are expendable. An item that computes for long runs at lower
priority, and still gets enough CPU for a fair limit.

Runs as a program of the runtime (`verifiers.workers.program`) or, without a broker, as a process that confines itself
before it says READY; both speak `verifiers.workers.messages` over standard input and output.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import resource
import select
import signal
import sys
import time
from dataclasses import dataclass, field

from runtime import confinement
from runtime.programs import READY
from verifiers.boxes.frames import HEADER as FRAME
from verifiers.boxes.own_time import LAST_PATIENCE, PATIENCE, computed_by, is_over
from verifiers.registry import packages, preload
from verifiers.workers import worker_process
from verifiers.workers.messages import CLOCK, INDEX, PACKAGE, MessageKind, message_reader, pack
from verifiers.workers.progress import NONE, WorkerProgress

READ = 1 << 20
POLL_SECONDS = 0.02
SLOW_SECONDS = 0.1
"""Seconds after which items behind a slow one move to another worker."""
GIVES_WAY_SECONDS = 0.1
"""CPU seconds after which an item's priority is lowered."""
LOWER = 12
"""Increase of niceness then: beside one other process, a sixteenth of a processor remains (sched(7))."""
MAX_FRAME = 4 << 20
"""Maximum size of one answer, in bytes; a worker that sends more is broken."""


@dataclass(eq=False)
class ForkedWorker:
    number: int
    pid: int
    requests: int
    replies: int
    progress: WorkerProgress
    seconds: float = 0.0
    gives_way: bool = False
    batches: int = 0
    """Batches assigned to it."""
    unsent: bytearray = field(default_factory=bytearray)
    unread: bytearray = field(default_factory=bytearray)
    slow: int = NONE
    """Index of the item that was reported as slow."""
    lowered: bool = False
    why: str = "died"
    cpu: float = 0.0

    @property
    def busy(self) -> bool:
        """True if the worker has unfinished batches, started or not."""
        return self.progress.batches < self.batches


class WorkerZygote:
    def __init__(self, source: int, sink: int, memory_mib: int) -> None:
        self._source, self._sink, self._memory_mib = source, sink, memory_mib
        self._reader = message_reader()
        self._workers: dict[int, ForkedWorker] = {}
        self._poll = select.poll()
        self._poll.register(source, select.POLLIN)
        self._by_descriptor: dict[int, ForkedWorker] = {}
        self._dying: set[int] = set()
        """Process ids that were killed and reported but not yet reaped."""

    def serve(self) -> None:
        """Passes work to forked workers, and replies back, until the other side closes; then kills all workers."""
        try:
            while True:
                busy = self._dying or any(worker.busy for worker in self._workers.values())
                for descriptor, _ in self._poll.poll(POLL_SECONDS * 1000 if busy else None):
                    if descriptor != self._source:
                        self._ready(descriptor)
                        continue
                    data = os.read(self._source, READ)
                    if not data:
                        return
                    for (_, number, kind), body in self._reader.feed(data):
                        self._receive(number, kind, body)
                now = time.monotonic()
                for worker in list(self._workers.values()):
                    self._watch(worker, now)
                if self._dying:
                    self._reap()
        finally:
            for worker in self._workers.values():
                os.kill(worker.pid, signal.SIGKILL)

    def _receive(self, number: int, kind: int, body: bytes) -> None:
        worker = self._workers.get(number)
        match kind:
            case MessageKind.ITEMS:
                if worker is None:
                    worker = self._fork(number)
                worker.seconds, worker.gives_way = CLOCK.unpack_from(body)
                worker.unsent += body[CLOCK.size :]
                worker.batches += 1
                self._send(worker)
            case MessageKind.HOLD if worker is not None:
                worker.progress.hold = INDEX.unpack(body)[0]
            case MessageKind.KILL if worker is not None:
                self._kill(worker, "asked")
            case MessageKind.LOAD:
                load(packages()[PACKAGE.unpack(body)[0]])
                self._write(number, MessageKind.LOADED, body)

    def _fork(self, number: int) -> ForkedWorker:
        request_out, request_in = os.pipe()
        reply_out, reply_in = os.pipe()
        progress, parent = WorkerProgress.shared(), os.getpid()
        pid = os.fork()
        if pid == 0:
            worker_process.main(request_out, reply_in, progress, parent=parent, memory_mib=self._memory_mib)
        os.close(request_out)
        os.close(reply_in)
        os.set_blocking(request_in, False)
        os.set_blocking(reply_out, False)
        worker = self._workers[number] = ForkedWorker(number, pid, request_in, reply_out, progress)
        self._by_descriptor[request_in] = self._by_descriptor[reply_out] = worker
        self._poll.register(reply_out, select.POLLIN)
        return worker

    def _send(self, worker: ForkedWorker) -> None:
        try:
            while worker.unsent:
                del worker.unsent[: os.write(worker.requests, worker.unsent)]
        except BlockingIOError:
            self._poll.register(worker.requests, select.POLLOUT)
            return
        except BrokenPipeError:
            worker.unsent.clear()  # the end of its replies is reported
        with contextlib.suppress(KeyError):
            self._poll.unregister(worker.requests)

    def _ready(self, descriptor: int) -> None:
        worker = self._by_descriptor.get(descriptor)
        if worker is None:
            return
        if descriptor == worker.requests:
            self._send(worker)
        elif self._read(worker) == 0:
            self._exited(worker)

    def _read(self, worker: ForkedWorker) -> int | None:
        """Reads a worker's pending replies and passes on complete ones. Returns the bytes read; None if none are
        pending, 0 at end of file."""
        try:
            data = os.read(worker.replies, READ)
        except BlockingIOError:
            return None
        worker.unread += data
        whole = self._complete(worker)
        if whole:
            self._write(worker.number, MessageKind.REPLIES, bytes(worker.unread[:whole]))
            del worker.unread[:whole]
        return len(data)

    def _complete(self, worker: ForkedWorker) -> int:
        """Returns the number of a worker's unread bytes that form complete frames."""
        end = 0
        while len(worker.unread) - end >= FRAME.size:
            (length,) = FRAME.unpack_from(worker.unread, end)
            if length > MAX_FRAME:
                self._kill(worker, "died")
                break
            if len(worker.unread) - end - FRAME.size < length:
                break
            end += FRAME.size + length
        return end

    def _watch(self, worker: ForkedWorker, now: float) -> None:
        """Checks the worker's current item against its limits: reports it as slow, lowers its priority, or kills it."""
        item, since, before = worker.progress.item, worker.progress.since, worker.progress.cpu
        if item == NONE or worker.progress.item != item:
            return
        age = now - since
        if age < SLOW_SECONDS:
            return
        worker.cpu = max(0.0, computed_by(worker.pid) - before)
        # A process that computes little may be starved by a busy machine; only a stopped one is certainly idle.
        patience = PATIENCE if worker.gives_way else LAST_PATIENCE
        over = is_over(worker.cpu, age, worker.seconds, least=PATIENCE * worker.seconds, patience=patience)
        if over or (age >= worker.seconds and _is_stopped(worker.pid)):
            self._time_out(worker)
            return
        if worker.slow != item:
            worker.slow = item
            self._write(worker.number, MessageKind.SLOW, INDEX.pack(item))
        if worker.gives_way and not worker.lowered and worker.cpu >= GIVES_WAY_SECONDS:
            worker.lowered = True
            with contextlib.suppress(OSError):  # best effort: it then only takes time from others
                os.setpriority(os.PRIO_PROCESS, worker.pid, os.getpriority(os.PRIO_PROCESS, 0) + LOWER)

    def _kill(self, worker: ForkedWorker, why: str) -> None:
        if worker.why == "died":
            worker.why = why
        os.kill(worker.pid, signal.SIGKILL)  # reaped at the end of its pipe

    def _time_out(self, worker: ForkedWorker) -> None:
        """Kills a worker and reports it immediately: at low priority, even dying may take long."""
        self._kill(worker, "timeout")
        while self._read(worker):
            pass
        self._dying.add(worker.pid)
        self._report_end(worker, -signal.SIGKILL)

    def _reap(self) -> None:
        self._dying -= {pid for pid in self._dying if os.waitpid(pid, os.WNOHANG)[0]}

    def _exited(self, worker: ForkedWorker) -> None:
        _, status = os.waitpid(worker.pid, 0)
        self._report_end(worker, os.waitstatus_to_exitcode(status))

    def _report_end(self, worker: ForkedWorker, status: int) -> None:
        item = worker.progress.item
        took = max(0.0, time.monotonic() - worker.progress.since) if item != NONE else 0.0
        if worker.why == "died" and item != NONE:
            worker.cpu = 0.0
        with contextlib.suppress(KeyError):
            self._poll.unregister(worker.requests)
        self._poll.unregister(worker.replies)
        for descriptor in (worker.requests, worker.replies):
            del self._by_descriptor[descriptor]
            os.close(descriptor)
        del self._workers[worker.number]
        ended = {"why": worker.why, "status": status, "item": item, "cpu": worker.cpu, "took": took}
        self._write(worker.number, MessageKind.ENDED, json.dumps(ended).encode())

    def _write(self, number: int, kind: MessageKind, body: bytes) -> None:
        data = memoryview(pack(number, kind, body))
        while data:
            data = data[os.write(self._sink, data) :]


def _is_stopped(child: int) -> bool:
    """True if a signal stopped the process; the kernel tells regardless of CPU load."""
    try:
        return os.waitid(os.P_PID, child, os.WSTOPPED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:  # it has ended; its pipe will report that
        return False


def load(package: str) -> None:
    """Imports one of `packages` and freezes its objects (gc.freeze), so that garbage collection in workers copies
    no pages."""
    gc.disable()
    preload(package)
    gc.freeze()
    gc.enable()


def confine_alone(parent: int) -> None:
    """Confines this process outside a box: ends with its parent, gains no privileges, keeps its namespaces."""
    worker_process.die_with(parent)
    for kind in (resource.RLIMIT_CORE, resource.RLIMIT_FSIZE):
        resource.setrlimit(kind, (0, 0))
    confinement.stay_in_namespaces()


def main(memory_mib: int, parent: int) -> None:
    """Runs the zygote process, from which workers are forked. `parent`: process id of the parent, or 0 in a box."""
    source, sink = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if parent:
        confine_alone(parent)
    os.write(sink, READY)
    os.dup2(null, 2)
    WorkerZygote(source, sink, memory_mib).serve()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
