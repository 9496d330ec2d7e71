"""What a tool call costs: `python benchmarks/tool_calls.py [--json FILE] [--calls N]`.

Beside the sandboxed calls, in the same run and on the same load, a plain `python3 -c` without a sandbox. Every snippet
is a new text, so that nothing is answered from a cache. Times are wall clock in milliseconds, seen by the caller.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import quantiles

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from runtime.backends.gvisor_find import describe
from runtime.sandbox import CallStatus, Tier
from runtime.sessions.pool import GVisorSessions
from runtime.settings import RuntimeSettings

P50_BAR_MS, P95_BAR_MS = 1.0, 5.0
SESSIONS = 64


def snippet(n: int) -> str:
    return f"import math\nprint(math.gcd({n + 12}, {n + 18}), sum(map(int, str({n * 7919}))))"


def timed(call: Callable[[int], object], times: int) -> dict[str, float]:
    """Median and 95th percentile in milliseconds."""
    taken = []
    for n in range(times):
        started = time.perf_counter()
        call(n)
        taken.append(1000 * (time.perf_counter() - started))
    cuts = quantiles(taken, n=20, method="inclusive")
    return {"p50_ms": round(cuts[9], 3), "p95_ms": round(cuts[18], 3)}


def plain_python(n: int) -> None:
    subprocess.run(["/usr/bin/python3", "-c", snippet(n)], capture_output=True, check=True)


def pipelined(pool: GVisorSessions, calls: int) -> float:
    """Calls per second when many sessions each have one call under way."""
    sessions = [pool.open() for _ in range(SESSIONS)]
    for session in sessions:
        session.run("1")
    started = time.perf_counter()
    futures = [sessions[n % SESSIONS].start(snippet(n)) for n in range(calls)]
    assert all(future.result().status is CallStatus.OK for future in futures)
    rate = calls / (time.perf_counter() - started)
    for session in sessions:
        session.close()
    return round(rate)


def measure(calls: int) -> dict[str, object]:
    figures: dict[str, object] = {"cores": os.cpu_count(), "load": round(os.getloadavg()[0], 2), "calls": calls}
    figures["runsc"] = describe().version
    with tempfile.TemporaryDirectory(prefix="assay-bench-") as folder:
        settings = RuntimeSettings(state_dir=Path(folder) / "state", root_dir=Path(folder) / "roots")
        started = time.perf_counter()
        with GVisorSessions(settings) as pool:
            pool.open().run("1")
        figures["first_start_ms"] = round(1000 * (time.perf_counter() - started))
        pool = GVisorSessions(settings)
        started = time.perf_counter()
        shared = pool.open()
        shared.run("1")
        figures["cold_start_ms"] = round(1000 * (time.perf_counter() - started))
        time.sleep(1.0)
        figures["shared"] = timed(lambda n: shared.run(snippet(n)), calls)
        for tier in (Tier.PROCESS, Tier.SANDBOX):
            with pool.open(tier=tier) as session:
                session.run("1")
                time.sleep(0.5)
                figures[tier.value] = timed(lambda n, at=session: at.run(snippet(n)), max(200, calls // 5))
        figures["plain_python"] = timed(plain_python, 40)
        figures["pipelined_calls_per_second"] = pipelined(pool, calls)
        started = time.perf_counter()
        pool.close()
        figures["close_ms"] = round(1000 * (time.perf_counter() - started))
    warm = figures["shared"]
    assert isinstance(warm, dict)
    figures["within_bar"] = warm["p50_ms"] <= P50_BAR_MS and warm["p95_ms"] <= P95_BAR_MS
    return figures


def main() -> int:
    """Exit code 1 when the shared tier misses its bar: 1 ms and 5 ms on an idle machine."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there as JSON")
    parser.add_argument("--calls", type=int, default=5_000)
    options = parser.parse_args()
    figures = measure(options.calls)
    for name, figure in figures.items():
        print(f"{name:28} {figure}")
    if options.json is not None:
        options.json.write_text(json.dumps(figures, indent=2) + "\n")
    return 0 if figures["within_bar"] else 1


if __name__ == "__main__":
    raise SystemExit(main())
