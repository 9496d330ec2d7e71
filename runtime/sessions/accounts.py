"""What one session or sandbox has used, added up from what the host measured."""

from __future__ import annotations

from runtime.backends.backend import BoxUsage
from runtime.sandbox import CallResult, Usage


class Account:
    def __init__(self) -> None:
        self.calls = self.snapshots = self.output_bytes = 0
        self.seconds = 0.0
        self._places = 0
        self._cpu_seconds = 0.0
        self._peak_mib = 0.0
        self._had_a_sandbox = False

    def placed(self) -> None:
        """It got a place to run in."""
        self._places += 1

    def called(self, seconds: float, output_bytes: int) -> None:
        """One call was answered."""
        self.seconds += seconds
        self.output_bytes += output_bytes

    def result(self, result: CallResult) -> None:
        self.called(result.seconds, len(result.output.encode()))

    def ended(self, used: BoxUsage) -> None:
        """The last figures of a sandbox of its own."""
        self._had_a_sandbox = True
        self._cpu_seconds += used.cpu_seconds
        self._peak_mib = max(self._peak_mib, used.peak_memory_mib)

    def usage(self, present: BoxUsage | None = None) -> Usage:
        """With the figures of the sandbox that it has now, if any."""
        own = present is not None or self._had_a_sandbox
        now = present or BoxUsage()
        return Usage(
            calls=self.calls,
            seconds=self.seconds,
            output_bytes=self.output_bytes,
            snapshots=self.snapshots,
            moves=max(0, self._places - 1),
            cpu_seconds=self._cpu_seconds + now.cpu_seconds if own else None,
            peak_memory_mib=max(self._peak_mib, now.peak_memory_mib) if own else None,
        )
