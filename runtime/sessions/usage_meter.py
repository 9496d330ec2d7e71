"""Accumulates the usage of one session or sandbox, as measured by the host.

Invariants: every exclusive sandbox is counted once, even while it ends and another has taken its place; usage lost with
a broker is unknown, so no sum is given. Called from the reactor only, except `called` and the counters, which belong to
the caller's thread.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from runtime.broker_api import Termination
from runtime.errors import SandboxError
from runtime.profile import BoxUsage
from runtime.sandbox import Usage
from runtime.sessions.outcomes import LossCause
from runtime.sessions.worker import Worker

Measured = Callable[[BoxUsage | SandboxError], None]


class UsageMeter:
    def __init__(self) -> None:
        self.calls = self.snapshots = 0
        self._output_bytes = self._ports = 0
        self._seconds = self._cpu_seconds = self._peak_mib = 0.0
        self._present: list[Worker] = []
        """Exclusive sandboxes not known to have ended."""
        self._is_alone = self._is_unknown = False
        """True if it ever had one; true if one was lost with its broker."""

    def called(self, seconds: float, output_bytes: int) -> None:
        """Adds an answered call to a session's usage."""
        self._seconds += seconds
        self._output_bytes += output_bytes

    def placed(self, worker: Worker, *, alone: bool) -> None:
        """Counts a session's place in a worker's sandbox. With `alone`, the sandbox is exclusive, and its usage is
        added when it ends."""
        self._ports += 1
        if alone:
            self._is_alone = True
            self._present.append(worker)
            worker.when_ended(partial(self._ended, worker))

    def report(self, measure: Callable[[Worker, Measured], None], done: Callable[[Usage], None]) -> None:
        """Calls back with a session's current usage: live exclusive sandboxes via `measure`, others' final."""
        asked = list(self._present)
        left = set(asked)
        found: dict[Worker, BoxUsage | SandboxError] = {}

        def known(worker: Worker) -> None:
            left.discard(worker)
            if not left:
                done(self._usage([usage for one, usage in found.items() if one in self._present]))

        def measured(worker: Worker, usage: BoxUsage | SandboxError) -> None:
            found[worker] = usage
            known(worker)

        def ended(worker: Worker, _termination: Termination) -> None:
            known(worker)

        for worker in asked:
            if worker.state == "ready":
                measure(worker, partial(measured, worker))
            else:
                worker.when_ended(partial(ended, worker))
        if not asked:
            done(self._usage([]))

    def _ended(self, worker: Worker, termination: Termination) -> None:
        self._present.remove(worker)
        self._is_unknown |= worker.lost_by is LossCause.BROKER
        self._cpu_seconds += termination.usage.cpu_seconds
        self._peak_mib = max(self._peak_mib, termination.usage.peak_memory_mib)

    def _usage(self, present: list[BoxUsage | SandboxError]) -> Usage:
        known = [usage for usage in present if isinstance(usage, BoxUsage)]
        is_said = self._is_alone and not self._is_unknown and len(known) == len(present)
        return Usage(
            calls=self.calls,
            seconds=self._seconds,
            output_bytes=self._output_bytes,
            snapshots=self.snapshots,
            moves=max(0, self._ports - 1),
            cpu_seconds=self._cpu_seconds + sum(usage.cpu_seconds for usage in known) if is_said else None,
            peak_memory_mib=max([self._peak_mib, *(usage.peak_memory_mib for usage in known)]) if is_said else None,
        )
