"""What one session or sandbox has used, added up from what the host measured. Called from the reactor only, but for
`called` and the counters, which belong to whoever makes the calls."""

from __future__ import annotations

from collections.abc import Callable

from runtime.backends.backend import BoxUsage
from runtime.errors import SandboxError
from runtime.launcher import Fate
from runtime.sandbox import Usage
from runtime.sessions.worker import Worker

Measured = Callable[[BoxUsage | SandboxError], None]


class Account:
    def __init__(self) -> None:
        self.calls = self.snapshots = 0
        self._output_bytes = self._places = 0
        self._seconds = self._cpu_seconds = self._peak_mib = 0.0
        self._own: Worker | None = None
        """The last sandbox that was its alone."""

    def called(self, seconds: float, output_bytes: int) -> None:
        """One call was answered."""
        self._seconds += seconds
        self._output_bytes += output_bytes

    def placed(self, worker: Worker, *, alone: bool) -> None:
        """It got a place to run in."""
        self._places += 1
        if alone:
            self._own = worker
            worker.when_ended(self._ended)

    def report(self, measure: Callable[[Worker, Measured], None], done: Callable[[Usage], None]) -> None:
        """The latest figures: of a sandbox of its own that lives, as `measure` finds them; of one that is ending, its
        last."""
        own = self._own

        def measured(now: BoxUsage | SandboxError) -> None:
            done(self._usage(now if isinstance(now, BoxUsage) else BoxUsage()))

        if own is None or own.fate is not None:
            done(self._usage(BoxUsage()))
        elif own.state == "ready":
            measure(own, measured)
        else:
            own.when_ended(lambda _fate: done(self._usage(BoxUsage())))

    def _ended(self, fate: Fate) -> None:
        self._cpu_seconds += fate.usage.cpu_seconds
        self._peak_mib = max(self._peak_mib, fate.usage.peak_memory_mib)

    def _usage(self, present: BoxUsage) -> Usage:
        own = self._own is not None
        return Usage(
            calls=self.calls,
            seconds=self._seconds,
            output_bytes=self._output_bytes,
            snapshots=self.snapshots,
            moves=max(0, self._places - 1),
            cpu_seconds=self._cpu_seconds + present.cpu_seconds if own else None,
            peak_memory_mib=max(self._peak_mib, present.peak_memory_mib) if own else None,
        )
