"""What forks workers and ends them: of one that computes nothing it is not known why, unless it is stopped."""

from __future__ import annotations

import os
import signal
import subprocess
import time

from verifiers.boxes.own_time import computed_by
from verifiers.workers.progress import WorkerProgress
from verifiers.workers.zygote import ForkedWorker, WorkerZygote


def test_whoever_gets_no_processor_is_not_taken_to_rest_and_whoever_is_stopped_is_ended() -> None:
    source, asks = os.pipe()
    hears, sink = os.pipe()
    requests, _ = given = os.pipe()
    replies, _ = taken = os.pipe()
    zygote = WorkerZygote(source, sink, memory_mib=64)
    with subprocess.Popen(["/usr/bin/sleep", "600"]) as running:
        progress = WorkerProgress.shared()
        progress.cpu, progress.since, progress.item = computed_by(running.pid), time.monotonic() - 9.0, 0
        worker = ForkedWorker(1, running.pid, given[1], replies, progress, seconds=1.0, batches=1)
        os.set_blocking(replies, False)
        zygote._workers[1] = worker
        zygote._by_descriptor = {worker.requests: worker, worker.replies: worker}
        zygote._poll.register(replies)
        zygote._watch(worker, progress.since + 9.0)
        assert zygote._workers == {1: worker}
        assert running.poll() is None
        with subprocess.Popen(["/usr/bin/true"]) as ended:
            os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)
            worker.pid = ended.pid
            zygote._watch(worker, progress.since + 9.0)
            assert zygote._workers == {1: worker}, "what has ended is reported when its pipe ends"
            worker.pid = running.pid
        running.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, running.pid, os.WSTOPPED | os.WNOWAIT)
        zygote._watch(worker, progress.since + 9.0)
        assert (zygote._workers, worker.why) == ({}, "timeout")
        assert running.wait() == -signal.SIGKILL
    for descriptor in (source, asks, hears, sink, requests, taken[1]):
        os.close(descriptor)
