"""Adds up what one session or sandbox has used, as the host measured it. Called from the reactor only, but for `called`
and the counters, which belong to whoever makes the calls."""

from __future__ import annotations

from collections.abc import Callable

from runtime.broker_api import Termination
from runtime.errors import SandboxError
from runtime.profile import BoxUsage
from runtime.sandbox import Usage
from runtime.sessions.worker import Worker

Measured = Callable[[BoxUsage | SandboxError], None]


class UsageMeter:
    def __init__(self) -> None:
        self.calls = self.snapshots = 0
        self._output_bytes = self._ports = 0
        self._seconds = self._cpu_seconds = self._peak_mib = 0.0
        self._own: Worker | None = None
        """The last sandbox that was its alone."""

    def called(self, seconds: float, output_bytes: int) -> None:
        """Counts a call that was answered."""
        self._seconds += seconds
        self._output_bytes += output_bytes

    def placed(self, worker: Worker, *, alone: bool) -> None:
        """Counts a port that it got."""
        self._ports += 1
        if alone:
            self._own = worker
            worker.when_ended(self._ended)

    def report(self, measure: Callable[[Worker, Measured], None], done: Callable[[Usage], None]) -> None:
        """Gives the latest figures: of a sandbox of its own that lives, as `measure` finds them; of one that is ending,
        its last."""
        own = self._own

        def measured(now: BoxUsage | SandboxError) -> None:
            done(self._usage(now if isinstance(now, BoxUsage) else BoxUsage()))

        if own is None or own.termination is not None:
            done(self._usage(BoxUsage()))
        elif own.state == "ready":
            measure(own, measured)
        else:
            own.when_ended(lambda _termination: done(self._usage(BoxUsage())))

    def _ended(self, termination: Termination) -> None:
        self._cpu_seconds += termination.usage.cpu_seconds
        self._peak_mib = max(self._peak_mib, termination.usage.peak_memory_mib)

    def _usage(self, present: BoxUsage) -> Usage:
        own = self._own is not None
        return Usage(
            calls=self.calls,
            seconds=self._seconds,
            output_bytes=self._output_bytes,
            snapshots=self.snapshots,
            moves=max(0, self._ports - 1),
            cpu_seconds=self._cpu_seconds + present.cpu_seconds if own else None,
            peak_memory_mib=max(self._peak_mib, present.peak_memory_mib) if own else None,
        )
