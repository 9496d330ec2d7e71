"""Benchmarks of the runtime on this machine: one function per figure, given a pool and a number of repetitions.

Invariants: every figure is wall clock at the caller, from work whose answers were verified; each snippet is a new text,
so no cache answers it; each function closes what it opened. A failed call raises Violation. Not promised: equal figures
on a busy machine.
"""

from __future__ import annotations

import contextlib
import subprocess
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median, quantiles
from typing import NamedTuple

from runtime.conformance import host
from runtime.conformance.check import Violation, answered
from runtime.conformance.suite import TAKES_SNAPSHOTS
from runtime.profile import BackendName
from runtime.sandbox import Limits, Sandbox, SessionPool, SnapshotId, Tier

CALLER = "bench"
PYTHON = "/usr/bin/python3"
BENCH_LIMITS = Limits(call_seconds=10.0, snapshots=1_000, calls=100_000)
BRANCHES = 8
READY_SECONDS = 0.4
"""Pause between uses of copies restored ahead, so that the next can be restored."""


class Spread(NamedTuple):
    """Median and 95th percentile of measured times, in milliseconds."""

    p50: float
    p95: float
    times: int


def spread(seconds: Sequence[float]) -> Spread:
    """Returns median and 95th percentile of at least one measured time, in milliseconds."""
    cuts = quantiles(seconds, n=20, method="inclusive") if len(seconds) > 1 else list(seconds) * 19
    return Spread(round(1000 * median(seconds), 3), round(1000 * cuts[18], 3), len(seconds))


def timed(action: Callable[[int], object], times: int) -> list[float]:
    """Returns the seconds taken by each call of `action`."""
    taken = []
    for number in range(times):
        started = time.perf_counter()
        action(number)
        taken.append(time.perf_counter() - started)
    return taken


def trivial(number: int) -> str:
    return f"x = {number}\nprint(x + 1)"


def heap(mib: int) -> str:
    """Returns Python code that fills this many MiB of memory, page by page."""
    return f"kept = 7\nheap = bytearray({mib} << 20)\nfor i in range(0, len(heap), 4096): heap[i] = 7"


def python_c(times: int) -> Spread:
    """Measures the time of a plain `python3 -c` without a sandbox, the baseline of all other figures."""
    command = [PYTHON if Path(PYTHON).exists() else "python3", "-c", "print(1)"]
    return spread(timed(lambda _: subprocess.run(command, capture_output=True, check=True), times))


def warm_calls(pool: SessionPool, tier: Tier, times: int) -> Spread:
    """Measures the time of a stateful call in a session that has answered before."""
    with pool.open(tier=tier, caller=CALLER) as session:
        answered(session.run("x = 0"))

        def call(number: int) -> None:
            if answered(session.run(trivial(number))) != f"{number + 1}\n":
                raise Violation("a call was answered with the output of another")

        return spread(timed(call, times))


def calls_per_second(pool: SessionPool, sessions: int, calls: int, tier: Tier = Tier.SHARED) -> float:
    """Returns the rate of trivial calls per second over several sessions, all submitted before the first answer."""
    with contextlib.ExitStack() as stack:
        opened = [stack.enter_context(pool.open(tier=tier, caller=CALLER)) for _ in range(sessions)]
        for session in opened:
            answered(session.run("x = 0"))
        started = time.perf_counter()
        futures = [opened[number % sessions].start(trivial(number)) for number in range(calls)]
        for future in futures:
            answered(future.result())
        return calls / (time.perf_counter() - started)


def opened(pool: SessionPool, times: int) -> Spread:
    """Measures the time from opening a separate sandbox to its first answer, right after closing earlier ones."""

    def once(number: int) -> None:
        with contextlib.closing(pool.sandbox(BENCH_LIMITS, caller=CALLER)) as box:
            answered(box.run(trivial(number)))

    return spread(timed(once, times))


def snapshots(pool: SessionPool, times: int, *, heap_mib: int = 0) -> Spread:
    """Measures the time of taking a snapshot of a running sandbox. Each is forgotten before the next."""
    taken = []
    with contextlib.closing(pool.sandbox(BENCH_LIMITS, caller=CALLER)) as box:
        answered(box.run(heap(heap_mib)))
        pool.forget(box.snapshot())
        for _ in range(times):
            started = time.perf_counter()
            saved = box.snapshot()
            taken.append(time.perf_counter() - started)
            pool.forget(saved)
    return spread(taken)


def rollbacks(pool: SessionPool, times: int, *, ready: bool = False) -> Spread:
    """Measures the time of rolling a sandbox back plus one answered call. `ready`: copies were restored ahead."""

    def back(box: Sandbox, saved: SnapshotId) -> None:
        box.restore(saved)
        if answered(box.run("print(kept)")) != "7\n":
            raise Violation("a rollback lost a name")

    with contextlib.closing(pool.sandbox(BENCH_LIMITS, caller=CALLER)) as box:
        answered(box.run("kept = 7"))
        saved = box.snapshot()
        if not ready:
            return spread(timed(lambda _: back(box, saved), times))
        box.prepare(saved, 1)
        taken = []
        for _ in range(times):
            time.sleep(READY_SECONDS)
            taken += timed(lambda _: back(box, saved), 1)
        box.prepare(saved, 0)
        return spread(taken)


def branches(pool: SessionPool, ways: int, times: int) -> Spread:
    """Measures the time from forking a sandbox into `ways` branches until all have answered."""
    taken = []
    with contextlib.closing(pool.sandbox(BENCH_LIMITS, caller=CALLER)) as box, ThreadPoolExecutor(ways) as threads:
        answered(box.run("kept = 7"))
        saved = box.snapshot()
        for _ in range(times):
            with contextlib.ExitStack() as stack:
                started = time.perf_counter()
                grown = box.fork(saved, ways)
                for branch in grown:
                    stack.callback(branch.close)
                printed = list(threads.map(lambda branch: answered(branch.run("print(kept)")), grown))
                taken.append(time.perf_counter() - started)
            if printed != ["7\n"] * ways:
                raise Violation("a branch lost a name")
    return spread(taken)


class Idle(NamedTuple):
    mib: float
    """Memory of one idle sandbox that has answered a call, in MiB."""
    pss: bool
    """True if shared pages are counted proportionally, which needs root; else the control group's charge is shown."""


def idle(pool: SessionPool, sandboxes: int, *, settle_seconds: float = 1.0) -> Idle:
    """Measures the memory of all processes of an idle sandbox, averaged over several that idle concurrently."""
    with contextlib.ExitStack() as stack:
        boxes = [
            stack.enter_context(contextlib.closing(pool.sandbox(BENCH_LIMITS, caller=CALLER))) for _ in range(sandboxes)
        ]
        for number, box in enumerate(boxes):
            answered(box.run(trivial(number)))
        time.sleep(settle_seconds)
        groups = [host.groups(box.id) for box in boxes]
        shares = [host.pss_mib(host.processes(folders)) for folders in groups]
        known = [share for share in shares if share]
        if len(known) == len(shares):
            return Idle(sum(known) / sandboxes, pss=True)
        return Idle(sum(map(host.charged_mib, groups)) / sandboxes, pss=False)


Values = dict[str, float]


class BenchStep(NamedTuple):
    what: str
    measure: Callable[[SessionPool, int], Values]
    """Takes the pool and the number of repetitions; returns figures by name."""
    times: int
    quick_times: int
    snapshots: bool = False
    """True if the step needs a backend with snapshots."""

    def figures(self, pool: SessionPool, *, quick: bool) -> Values:
        """Runs the benchmark step and returns its figures. Raises Violation when a measured property does not hold."""
        return self.measure(pool, self.quick_times if quick else self.times)


def bench_steps(backend: BackendName) -> tuple[BenchStep, ...]:
    """Returns the benchmark's steps that this backend supports."""
    return tuple(step for step in STEPS if TAKES_SNAPSHOTS[backend] or not step.snapshots)


def _spread(name: str, found: Spread) -> Values:
    return {f"{name}_ms": found.p50, f"{name}_p95_ms": found.p95}


def _calls(tier: Tier, name: str) -> Callable[[SessionPool, int], Values]:
    def measure(pool: SessionPool, times: int) -> Values:
        found = warm_calls(pool, tier, times)
        return {f"{name}_p50_ms": found.p50, f"{name}_p95_ms": found.p95}

    return measure


def _idle(pool: SessionPool, sandboxes: int) -> Values:
    found = idle(pool, sandboxes)
    return {"idle_mib": round(found.mib, 1), "idle_is_pss": float(found.pss)}


STEPS = (
    BenchStep("python3 -c, for comparison", lambda _, times: _spread("python_c", python_c(times)), 40, 15),
    BenchStep("calls of a shared interpreter", _calls(Tier.SHARED, "call"), 3_000, 500),
    BenchStep("calls of a process", _calls(Tier.PROCESS, "process_call"), 1_000, 200),
    BenchStep("calls of a sandbox", _calls(Tier.SANDBOX, "sandbox_call"), 1_000, 200),
    BenchStep(
        "calls a second",
        lambda pool, times: {"calls_per_second": round(calls_per_second(pool, 4, times))},
        20_000,
        4_000,
    ),
    BenchStep("opening a sandbox", lambda pool, times: _spread("open", opened(pool, times)), 15, 4),
    BenchStep("snapshots", lambda pool, times: _spread("snapshot", snapshots(pool, times)), 20, 5, snapshots=True),
    BenchStep("rollbacks", lambda pool, times: _spread("restore", rollbacks(pool, times)), 20, 5, snapshots=True),
    BenchStep(
        "rollbacks to copies restored ahead",
        lambda pool, times: _spread("restore_ready", rollbacks(pool, times, ready=True)),
        15,
        4,
        snapshots=True,
    ),
    BenchStep(
        f"{BRANCHES} branches",
        lambda pool, times: _spread(f"branch{BRANCHES}", branches(pool, BRANCHES, times)),
        8,
        2,
        snapshots=True,
    ),
    BenchStep("idle sandboxes", _idle, 8, 4),
)
