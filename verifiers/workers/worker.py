"""The process that decides: it reads batches from a private pipe and answers item by item.

It is started by `verifiers.workers.service` and by nobody else. It dies with its parent (PDEATHSIG), may not write
files or start processes, has its memory and processor time capped, and leaves no core. SymPy is imported here, when
the first item asks for it, after saying so: the clock on the host does not count that.
"""

from __future__ import annotations

import ctypes
import importlib
import os
import resource
import signal
import sys
import time
from typing import Any

from verifiers.errors import SpecError
from verifiers.registry import decide
from verifiers.spec import SPEC, ExpressionSpec, PredicateSpec, Spec
from verifiers.workers.frames import Frames, encode

PR_SET_PDEATHSIG = 1
MAY_TAKE_LONG = (ExpressionSpec, PredicateSpec)
GATHERED = 256
READ = 1 << 20


def die_with_parent(parent: int) -> None:
    """SIGKILL when the parent thread ends; leaves at once where it already has."""
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG) failed")
    if os.getppid() != parent:
        sys.exit(0)


def limit(memory_mib: int) -> None:
    for kind, most in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_NPROC, 0),
        (resource.RLIMIT_AS, memory_mib << 20),
    ):
        resource.setrlimit(kind, (most, most))


def allow_processor(seconds: float) -> None:
    """A backstop for a host that cannot watch its clock: SIGXCPU after three times the item's time."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    most = int(used.ru_utime + used.ru_stime + 3 * seconds) + 2
    resource.setrlimit(resource.RLIMIT_CPU, (most, resource.RLIM_INFINITY))


def judge(spec: Spec, submission: str) -> dict[str, Any]:
    """One item's answer: a verdict, or what kept us from one."""
    started = time.perf_counter()
    try:
        verdict = decide(spec, submission)
    except SpecError as error:
        return {"kind": "bad_spec", "reason": f"the spec cannot be used: {error}"}
    except MemoryError:
        return {"kind": "memory"}
    except RecursionError:
        return {"kind": "recursion"}
    except Exception as error:  # noqa: BLE001 - a verifier that breaks is our fault and is reported as such
        return {"kind": "broken", "reason": f"the verifier broke: {type(error).__name__}: {error}"[:300]}
    content = verdict.model_dump(mode="json")
    return {"kind": "verdict", "verdict": {**content, "seconds": time.perf_counter() - started}}


class Replies:
    """The way back. Answers that cost nothing are gathered; whatever may take long is announced by an empty buffer."""

    def __init__(self, pipe: int) -> None:
        self._pipe = pipe
        self._waiting: list[bytes] = []

    def add(self, message: dict[str, Any]) -> None:
        self._waiting.append(encode(message))
        if len(self._waiting) >= GATHERED:
            self.flush()

    def flush(self) -> None:
        data = memoryview(b"".join(self._waiting))
        self._waiting.clear()
        while data:
            data = data[os.write(self._pipe, data) :]


def serve(requests: int, replies: Replies, memory_mib: int) -> None:
    """Answers batches until the other side closes its end."""
    limit(memory_mib)
    warm = False
    frames = Frames()
    replies.add({"kind": "ready"})
    replies.flush()
    while data := os.read(requests, READ):
        frames.feed(data)
        while (batch := frames.next()) is not None:
            allow_processor(batch["seconds"] * len(batch["items"]))
            for index, (spec_data, submission) in enumerate(batch["items"]):
                spec = SPEC.validate_python(spec_data)
                if isinstance(spec, MAY_TAKE_LONG):
                    replies.flush()
                    if not warm:
                        warm = warm_up(replies)
                replies.add({"index": index, **judge(spec, submission), "cpu": time.process_time()})
            replies.flush()


def warm_up(replies: Replies) -> bool:
    """Imports SymPy between two messages, so that the host takes that time off the item's clock."""
    replies.add({"kind": "warming"})
    replies.flush()
    importlib.import_module("verifiers.answers.symbolic")
    replies.add({"kind": "warm", "cpu": time.process_time()})
    replies.flush()
    return True


def main() -> None:
    requests, replies, parent, memory_mib = map(int, sys.argv[1:])
    die_with_parent(parent)
    serve(requests, Replies(replies), memory_mib)


if __name__ == "__main__":
    main()
