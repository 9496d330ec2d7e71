"""Verdicts from a warm worker process that is killed on a wall clock.

The host never parses a submission: it sends data, waits, and kills. SymPy lives in the worker only.

Who is to blame when an item has no verdict. An item that is lost because the worker died, ran out of memory or did not
answer in time is judged once more, alone, in a fresh worker. If that is lost too, then
    - out of time while it was computing, out of memory, or too deep: the submission asked for that, by its own text
      and the same way every time. It is a `fail`, "too expensive to decide": a hang is never a pass, nor a way out.
    - anything else (the worker was killed by somebody, could not start, got no processor, or broke): `infra_error`.
A first time-out is final without a second run when the worker computed for nearly all of it. A spec that cannot be used
is `infra_error` as well: it says nothing about the submission. Items around a lost one keep their verdicts.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Any, Self

from verifiers.registry import identity
from verifiers.spec import Spec
from verifiers.verdict import Outcome, Verdict
from verifiers.workers.process import WorkerLost, WorkerProcess

MEMORY_MIB = 1024
"""Address space of the worker; SymPy itself needs about 150."""
START_SECONDS = 60.0
"""For starting a worker and for importing SymPy, which no item's clock counts."""
BUSY_SHARE = 0.8
"""A time-out is the submission's own when the worker computed for at least this share of it."""
BUSY_SHARE_ALONE = 0.3
"""The same for the second run: a machine may be crowded twice, but not that much."""

Pair = tuple[Spec, str]


class VerifierService:
    """A context manager; safe to use from several threads, which then take turns."""

    def __init__(self, *, memory_mib: int = MEMORY_MIB) -> None:
        self._memory_mib = memory_mib
        self._lock = threading.Lock()
        self._worker: WorkerProcess | None = None
        # The kernel kills a worker when the thread that started it ends, so one thread of ours starts them all.
        self._starter = ThreadPoolExecutor(max_workers=1, thread_name_prefix="verifier-starter")
        self._closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def worker_pid(self) -> int | None:
        """Process id of the worker that is warm now."""
        return self._worker.pid if self._worker else None

    def close(self) -> None:
        """Kills the worker. Closing twice is fine."""
        with self._lock:
            self._closed = True
            self._drop()
            self._starter.shutdown()

    def verify(self, spec: Spec, submission: str, seconds: float = 5.0) -> Verdict:
        """One verdict; see `verify_many`."""
        return self.verify_many([(spec, submission)], seconds)[0]

    def verify_many(self, pairs: Sequence[Pair], seconds: float = 5.0) -> list[Verdict]:
        """A verdict for each pair, in order. `seconds` is the wall clock of one item; never raises for an item."""
        verdicts: dict[int, Verdict] = {}
        with self._lock:
            if self._closed:
                raise ValueError("this verifier service is closed")
            while len(verdicts) < len(pairs):
                self._advance(pairs, verdicts, seconds)
        return [verdicts[index] for index in range(len(pairs))]

    def _advance(self, pairs: Sequence[Pair], verdicts: dict[int, Verdict], seconds: float) -> None:
        """Asks for everything still open; ends early, with one more verdict, at the first item that is lost."""
        first = len(verdicts)
        try:
            worker = self._ready()
            worker.ask(_batch(pairs[first:], seconds), time.monotonic() + START_SECONDS)
            for index in range(first, len(pairs)):
                verdicts[index] = self._answer(worker, pairs[index], seconds)
        except WorkerLost as lost:
            self._drop()
            index = len(verdicts)
            spec = pairs[index][0]
            own = lost.kind == "timeout" and lost.cpu >= BUSY_SHARE * seconds
            verdicts[index] = self._too_expensive(spec, lost, seconds) if own else self._alone(pairs[index], seconds)
            if lost.kind == "start" and verdicts[index].outcome is Outcome.INFRA_ERROR:
                # No worker can be had: what is true of one item is true of the rest.
                for other in range(index + 1, len(pairs)):
                    verdicts[other] = _unjudged(pairs[other][0], Outcome.INFRA_ERROR, verdicts[index].reason, 0.0)

    def _alone(self, pair: Pair, seconds: float) -> Verdict:
        """The second and last attempt, in a fresh worker with nothing else to do."""
        try:
            worker = self._ready()
            worker.ask(_batch([pair], seconds), time.monotonic() + START_SECONDS)
            return self._answer(worker, pair, seconds)
        except WorkerLost as lost:
            self._drop()
            own = lost.kind in ("memory", "recursion", "cpu")
            if own or (lost.kind == "timeout" and lost.cpu >= BUSY_SHARE_ALONE * seconds):
                return self._too_expensive(pair[0], lost, seconds)
            return _unjudged(pair[0], Outcome.INFRA_ERROR, f"no verdict after two attempts: {lost}", seconds)

    def _answer(self, worker: WorkerProcess, pair: Pair, seconds: float) -> Verdict:
        deadline = time.monotonic() + seconds
        while True:
            message = worker.receive(deadline)
            match message["kind"]:
                case "warming":
                    deadline = time.monotonic() + START_SECONDS
                case "warm":
                    deadline = time.monotonic() + seconds
                case "verdict":
                    return Verdict.model_validate(message["verdict"])
                case "memory" | "recursion" as kind:
                    raise WorkerLost(kind, f"out of {'memory' if kind == 'memory' else 'stack'}")
                case _:
                    return _unjudged(pair[0], Outcome.INFRA_ERROR, message["reason"], 0.0)

    def _too_expensive(self, spec: Spec, lost: WorkerLost, seconds: float) -> Verdict:
        reason = {
            "memory": f"too expensive to decide within {self._memory_mib} MiB",
            "recursion": "too deeply nested to decide",
        }.get(lost.kind, f"too expensive to decide within {seconds:g} s")
        return _unjudged(spec, Outcome.FAIL, reason, seconds)

    def _ready(self) -> WorkerProcess:
        """The warm worker, or a new one. Raises WorkerLost where none can be started."""
        if self._worker is None:
            try:
                worker = self._starter.submit(WorkerProcess, self._memory_mib).result()
            except OSError as error:
                raise WorkerLost("start", f"the worker cannot be started: {error}") from error
            self._worker = worker
            message: dict[str, Any] = worker.receive(time.monotonic() + START_SECONDS)
            if message.get("kind") != "ready":
                raise WorkerLost("start", "the worker does not speak this protocol")
        return self._worker

    def _drop(self) -> None:
        if self._worker is not None:
            self._worker.kill()
            self._worker = None


def _batch(pairs: Sequence[Pair], seconds: float) -> dict[str, Any]:
    return {"seconds": seconds, "items": [(spec.model_dump(mode="json"), submission) for spec, submission in pairs]}


def _unjudged(spec: Spec, outcome: Outcome, reason: str, seconds: float) -> Verdict:
    name, version = identity(spec)
    return Verdict(outcome=outcome, score=0.0, reason=reason, verifier=name, version=version, seconds=seconds)
