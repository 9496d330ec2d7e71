"""Conformance checks that every backend must pass, and benchmarks, for any machine.

`suite.py` lists and runs the checks; each other module holds one area. `bench.py` measures costs. Checks use only
`SessionPool` and what any user of the host can see. Start with `check.py`, which defines a check.
"""

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
