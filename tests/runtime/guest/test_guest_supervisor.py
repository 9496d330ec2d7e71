"""What stands between the host and the processes of sessions, with a parent of processes that is as quick as can be."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable

from runtime.guest import wire
from runtime.guest.process import Process, ProcessParent, pipes
from runtime.guest.supervisor import Supervisor
from runtime.guest.wire import Op, ReplyKind


class ReapsAtOnce(ProcessParent):
    """What it reaps is gone, and its number free, when it returns."""

    stops = True

    def __init__(self, process: Process, running: subprocess.Popen[bytes]) -> None:
        self._process, self._running = process, running

    def fork(self, done: Callable[[Process | None], None]) -> None:
        done(self._process)

    def reap(self, pid: int, done: Callable[[int], None]) -> None:
        self._running.kill()
        self._running.wait()
        done(0)


def test_a_process_that_was_ended_because_it_does_not_listen_is_not_woken() -> None:
    ours, (requests, *others) = pipes()
    with subprocess.Popen(["/usr/bin/sleep", "600"]) as running:
        process = Process(running.pid, ours)
        supervisor = Supervisor(ReapsAtOnce(process, running), ahead=1, most_ahead=1, output_bytes=100)
        supervisor.begin(0)
        os.close(requests)
        process.stopped = True
        source, asks = os.pipe()
        hears, sink = os.pipe()
        nonce = bytes(range(wire.NONCE_BYTES))
        os.write(asks, wire.pack_request(nonce, Op.RUN, 0, b"1"))
        os.close(asks)
        supervisor.serve(source, sink)
        said = [(reply.kind, reply.nonce) for reply in wire.Replies(1_000).replies(os.read(hears, 1 << 12))]
    assert said == [(ReplyKind.READY, wire.NO_NONCE), (ReplyKind.DIED, nonce)]
    for descriptor in (source, hears, sink, *others):
        os.close(descriptor)
