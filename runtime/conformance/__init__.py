"""Checks what every backend has to do, on anybody's own machine, and measures what it costs there."""

from runtime.conformance.bench import BENCH_LIMITS, bench_steps
from runtime.conformance.check import LIMITS, CheckOutcome, CheckResult, ConformanceCheck, Violation
from runtime.conformance.suite import AREAS, TAKES_SNAPSHOTS, chosen, conform

__all__ = [
    "AREAS",
    "BENCH_LIMITS",
    "LIMITS",
    "TAKES_SNAPSHOTS",
    "CheckOutcome",
    "CheckResult",
    "ConformanceCheck",
    "Violation",
    "bench_steps",
    "chosen",
    "conform",
]
