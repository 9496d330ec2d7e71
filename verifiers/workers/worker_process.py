"""The deciding process: forked from a warm zygote, it reads batches from a pipe and answers item by item.

Invariants: before it reads its first item it can no longer open a file for writing, start a process or program, signal
another process or create a socket, and its memory and CPU time are limited. None of that can be undone.
"""

from __future__ import annotations

import functools
import os
import resource
import signal
import sys
import time

from runtime import confinement
from verifiers.boxes.frames import Frames, encode
from verifiers.contract.errors import SpecError
from verifiers.registry import decide, propose
from verifiers.registry.spec import SPEC, Spec
from verifiers.workers.progress import WorkerProgress

READ = 1 << 20
PROPOSING_SHARE = 0.7
"""Share of an item's time limit after which proposers stop by themselves."""
FLUSH_SECONDS = 0.002
"""Maximum time that answers are buffered, in seconds. Answers lost behind a slow item are decided again."""
BACKSTOP = 3
"""CPU seconds per second of an item's time limit after which the kernel kills the worker."""
OUT_OF_MEMORY = 77
"""Exit status of a worker with too little memory to report it."""


@functools.lru_cache(maxsize=1024)
def spec_of(text: str) -> Spec:
    return SPEC.validate_json(text)


def decided(index: int, spec: str, submission: str, way: str = "", seconds: float = 0.0) -> bytes:
    """Returns one item's answer as a frame: a verdict, or the reason for its absence. With a `way`, the submission is a
    question and the answer contains proposals."""
    started = time.perf_counter()
    try:
        asked = spec_of(spec)
        if way:
            found = propose(asked, way, submission, PROPOSING_SHARE * seconds)
            return encode({"index": index, "kind": "proposal", "proposal": found.model_dump(mode="json")})
        verdict = decide(asked, submission)
    except SpecError as error:
        return encode({"index": index, "kind": "spec_problem", "message": str(error)[:1000], "hint": error.hint[:1000]})
    except MemoryError:
        raise  # `serve` reports it, after this frame's memory is freed
    except RecursionError:
        return encode({"index": index, "kind": "recursion", "seconds": time.perf_counter() - started})
    except Exception as error:  # noqa: BLE001 - a verifier that breaks is our fault and is reported as such
        reason = f"the verifier broke: {type(error).__name__}: {ascii(str(error))[1:-1]}"[:300]
        return encode({"index": index, "kind": "broken", "reason": reason})
    timed = verdict.model_copy(update={"seconds": time.perf_counter() - started})
    return encode({"index": index, "kind": "verdict", "verdict": timed.model_dump(mode="json")})


class ReplyWriter:
    """Writes a worker's replies to its pipe, batching those that come in quick succession."""

    def __init__(self, pipe: int) -> None:
        self._pipe = pipe
        self._waiting: list[bytes] = []
        self._flushed = time.monotonic()

    def add(self, frame: bytes) -> None:
        self._waiting.append(frame)
        if time.monotonic() - self._flushed > FLUSH_SECONDS:
            self.flush()

    def flush(self) -> None:
        data = memoryview(b"".join(self._waiting))
        self._waiting.clear()
        while data:
            data = data[os.write(self._pipe, data) :]
        self._flushed = time.monotonic()


def bound(memory_mib: int) -> None:
    for kind, most in ((resource.RLIMIT_CORE, 0), (resource.RLIMIT_FSIZE, 0), (resource.RLIMIT_DATA, memory_mib << 20)):
        resource.setrlimit(kind, (most, most))


def allow_processor(seconds: float) -> None:
    """Limits this process's CPU time, as a backstop if the zygote cannot watch the clock."""
    most = int(time.process_time() + BACKSTOP * seconds) + 2
    resource.setrlimit(resource.RLIMIT_CPU, (most, resource.RLIM_INFINITY))


def silence(*keep: int) -> None:
    """Discards all output of libraries and closes every descriptor except `keep`."""
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        if descriptor not in keep:
            os.dup2(null, descriptor)
    before = 3
    for descriptor in sorted({*keep, 1 << 20}):
        if descriptor >= before:
            os.closerange(before, descriptor)
            before = descriptor + 1


def serve(requests: int, replies: ReplyWriter, progress: WorkerProgress) -> None:
    """Answers batches of submissions until the other side closes its end or sets `hold`."""
    frames = Frames()
    while data := os.read(requests, READ):
        frames.feed(data)
        while (batch := frames.next()) is not None:
            allow_processor(batch["seconds"] * len(batch["items"]))
            for index, (spec, submission) in enumerate(batch["items"], batch["first"]):
                if not progress.begin(index):
                    replies.flush()
                    return
                try:
                    replies.add(decided(index, spec, submission, batch.get("way", ""), batch["seconds"]))
                except MemoryError:
                    took = time.monotonic() - progress.since
                    replies.add(encode({"index": index, "kind": "memory", "seconds": took}))
            progress.rest()
            replies.flush()


def main(requests: int, replies: int, progress: WorkerProgress, *, parent: int, memory_mib: int) -> None:
    """Runs a worker in the forked process, confined; does not return."""
    status = 1
    try:
        die_with(parent)
        silence(requests, replies)
        bound(memory_mib)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        confinement.allow_reading_only()
        serve(requests, ReplyWriter(replies), progress)
        status = 0
    except BrokenPipeError:
        status = 0
    except MemoryError:
        status = OUT_OF_MEMORY
    finally:
        os._exit(status)


def die_with(parent: int) -> None:
    """Arranges for SIGKILL of this process when its parent ends; exits if it already has."""
    confinement.end_with_parent(signal.SIGKILL)
    if os.getppid() != parent:
        sys.exit(0)
