"""What the runtime can do: `python benchmarks/runtime.py [--json FILE] [--only NAME,...] [--quick]`.

Every figure stands beside what it is compared with, measured in the same run on the same load. Snippets are new texts,
so that nothing is answered from a cache. Times are wall clock as the caller sees them. Exit code 1 when a bar is
missed: the table says which.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from statistics import mean
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import leftovers
from benchmarks.bare_broker import bare_broker
from benchmarks.record import write_run
from runtime.backends.gvisor import FLAGS
from runtime.backends.locate import find_runsc
from runtime.broker import BrokerClient
from runtime.broker.client import start_private, wait_for_private
from runtime.broker_api import Handle
from runtime.conformance import Violation, bench
from runtime.conformance.check import answered
from runtime.errors import SandboxError
from runtime.reactor import Reactor
from runtime.sandbox import CallResult, CallStatus, Limits, Priority, Tier
from runtime.sessions import Sessions
from runtime.sessions.starts import profile
from runtime.settings import BrokerSettings, RuntimeSettings

WARMING = 4
"""Rounds until the pool has as many ready as are asked for at once."""


def typical(n: int) -> str:
    """A pure snippet of a few milliseconds, as agents write them: a loop over a few thousand numbers."""
    return f"total = 0\nfor k in range(20000):\n    total += (k * {n + 3}) % 7\nprint(total)"


def spread(taken: list[float]) -> dict[str, float]:
    """Median, 95th percentile and number of times given in seconds, in milliseconds."""
    return shown(bench.spread(taken))


def sessions_per_second(pool: Sessions, tier: Tier, *, wide: int, sessions: int) -> float:
    """Counts sessions opened, called twice and closed, `wide` at a time, without a thread for each."""
    done: Future[None] = Future()
    opened = closed = 0

    def begin() -> None:
        nonlocal opened
        if opened >= sessions or done.done():
            return
        opened += 1
        session = pool.open(tier=tier, caller=bench.CALLER)
        first, second = session.start("x = 20"), session.start("print(x + 1)")

        def ended(result: Future[CallResult]) -> None:
            nonlocal closed
            try:
                answered(first.result())
                if answered(result.result()) != "21\n":
                    raise Violation("a session lost its names")
            except Exception as error:  # noqa: BLE001 - handed to who waits
                if not done.done():
                    done.set_exception(error)
                return
            finally:
                session.close()
            closed += 1
            if closed == sessions:
                done.set_result(None)
            else:
                begin()

        second.add_done_callback(ended)

    started = time.perf_counter()
    for _ in range(wide):
        begin()
    done.result()
    return sessions / (time.perf_counter() - started)


def shown(found: bench.Spread) -> dict[str, float]:
    return {"p50_ms": found.p50, "p95_ms": found.p95, "n": found.times}


def sound(result: CallResult) -> CallResult:
    if result.status is not CallStatus.OK:
        raise RuntimeError(f"a call ended as {result.status}: {result.error}")
    return result


class Bench:
    """One folder and its pool; `scale` shortens the long scenarios."""

    def __init__(self, folder: Path, scale: float) -> None:
        self.folder, self.scale = folder, scale
        self.settings = RuntimeSettings(
            own=BrokerSettings(state_dir=folder / "state", root_dir=folder / "roots"),
            limits=Limits(call_seconds=10.0, calls=10_000_000, snapshots=100_000),
        )
        self.pool = Sessions(self.settings)

    def times(self, number: int) -> int:
        return max(3, int(number * self.scale))

    # calls

    def warm_call(self) -> dict[str, Any]:
        figures: dict[str, Any] = {
            tier.value: shown(bench.warm_calls(self.pool, tier, self.times(3000))) for tier in Tier
        }
        figures["python_c"] = shown(bench.python_c(40))
        figures["bar"] = "0.3 / 1 ms"
        figures["met"] = figures["shared"]["p50_ms"] <= 0.3 and figures["shared"]["p95_ms"] <= 1.0
        return figures

    def throughput(self) -> dict[str, Any]:
        """The same client before the same worker: in its sandbox, and as a plain process of this host."""
        rates = {count: self._rate(self.pool, count) for count in (2, 4, 8)}
        path = self.folder / "bare.sock"
        with bare_broker(path), Sessions(self.settings.model_copy(update={"broker": path})) as bare_pool:
            bare = {count: self._rate(bare_pool, count) for count in (2, 4, 8)}
        best, best_bare = max(rates.values()), max(bare.values())
        return {
            "calls_per_second": rates,
            "without_a_sandbox": bare,
            "share": round(best / best_bare, 2),
            "bar": "8,000/s, and a third of the worker without a sandbox",
            "met": best >= 8_000 and best >= best_bare / 3,
        }

    def _rate(self, pool: Sessions, count: int) -> int:
        """Calls per second of that many sessions, each of which makes its next call when it has the last answer."""
        calls = self.times(20_000)
        numbers = iter(range(calls))
        sessions = [pool.open() for _ in range(count)]
        for session in sessions:
            session.run("1")
        done: list[Future[None]] = [Future() for _ in sessions]

        def ask(place: int, last: Future[CallResult] | None) -> None:
            try:
                if last is not None:
                    sound(last.result())
                number = next(numbers, None)
                if number is None:
                    done[place].set_result(None)
                else:
                    sessions[place].start(bench.trivial(number)).add_done_callback(partial(ask, place))
            except BaseException as error:  # noqa: BLE001 - handed to who waits
                done[place].set_exception(error)

        started = time.perf_counter()
        for place in range(count):
            ask(place, None)
        for one in done:
            one.result()
        rate = calls / (time.perf_counter() - started)
        for session in sessions:
            session.close()
        return round(rate)

    def queue(self) -> dict[str, Any]:
        """Many calls of many rollouts at once; each rollout asks for its next call when it has the last answer."""
        rollouts, calls = 500, self.times(45_000)
        each = calls // rollouts
        with self.pool.open() as probe:
            probe.run("1")
            alone = [sound(probe.run(typical(n))).seconds for n in range(200)]
        work = mean(alone) * each * rollouts
        pool = self.pool
        waits: list[float] = []
        ends: list[float] = []

        def rollout(number: int) -> None:
            session = pool.open(caller=f"rollout-{number}")
            left = list(range(each))
            done: Future[None] = Future()

            def ask() -> None:
                if not left:
                    ends.append(time.perf_counter())
                    session.close()
                    done.set_result(None)
                    return
                asked = time.perf_counter()
                future = session.start(typical(number * 1000 + left.pop()))

                def answered(result: Future[CallResult]) -> None:
                    try:
                        sound(result.result())
                    except BaseException as error:  # noqa: BLE001 - handed to who waits
                        done.set_exception(error)
                        return
                    waits.append(time.perf_counter() - asked)
                    ask()

                future.add_done_callback(answered)

            finished.append(done)
            ask()

        finished: list[Future[None]] = []
        started = time.perf_counter()
        for number in range(rollouts):
            rollout(number)
        for done in finished:
            done.result()
        wall = time.perf_counter() - started
        cores = os.cpu_count() or 1
        ratio, fairness = wall / (work / cores), max(waits) / mean(waits)
        return {
            "rollouts": rollouts,
            "calls": len(waits),
            "wall_seconds": round(wall, 2),
            "work_seconds": round(work, 2),
            "work_ms_per_call_alone": round(1000 * mean(alone), 3),
            "wall_by_work_per_core": round(ratio, 3),
            "mean_wait_ms": round(1000 * mean(waits), 1),
            "max_wait_ms": round(1000 * max(waits), 1),
            "max_by_mean_wait": round(fairness, 2),
            "bar": "all answered, max/mean wait under 3, wall within 1.3 of work / cores",
            "met": len(waits) == each * rollouts and fairness < 3 and ratio <= 1.3,
        }

    # snapshots

    def snapshot(self) -> dict[str, Any]:
        figures: dict[str, Any] = {}
        for name, heap_mib, bar in (("fresh", 0, 60), ("heap_50_mb", 50, 100)):
            figures[name] = shown(bench.snapshots(self.pool, self.times(20), heap_mib=heap_mib))
            figures[f"{name}_met"] = figures[name]["p50_ms"] <= bar
        figures["bar"] = "60 / 100 ms (medians)"
        figures["met"] = figures["fresh_met"] and figures["heap_50_mb_met"]
        return figures

    def rollback(self) -> dict[str, Any]:
        figures: dict[str, Any] = {
            "answered": shown(bench.rollbacks(self.pool, self.times(20))),
            "restored_ahead": shown(bench.rollbacks(self.pool, self.times(20), ready=True)),
        }
        figures["bar"] = "150 ms with an answered call; under 10 ms when a copy was restored ahead (medians)"
        figures["met"] = figures["answered"]["p50_ms"] <= 150 and figures["restored_ahead"]["p50_ms"] < 10
        return figures

    def hand_over(self) -> dict[str, Any]:
        """From asking the broker for sandboxes that stand ready until their pipes are here, four in a row after some
        idle time: the first finds both processes cold, the others do not. The same through `SessionPool.sandbox`."""
        reactor, (connection, process) = Reactor(), start_private(self.settings.own)
        made: Future[BrokerClient] = Future()
        reactor.call(lambda: made.set_result(BrokerClient(reactor, connection)))
        client = made.result()
        first, later, on_ready, answered = [], [], [], []
        wanted = profile("sandbox", (), self.settings.limits, self.settings)

        def ask() -> Handle:
            answer: Future[Handle | SandboxError] = Future()
            reactor.here(
                partial(client.launch, wanted, caller="bench", priority=Priority.JOB, on_ready=answer.set_result)
            )
            handle = answer.result()
            assert not isinstance(handle, SandboxError), handle
            return handle

        def end(handle: Handle) -> None:
            reactor.call(lambda: client.end(handle, lambda _: None))

        for turn in range(self.times(25) + WARMING):
            handles, taken = [], []
            for _ in range(4):
                started = time.perf_counter()
                handles.append(ask())
                taken.append(time.perf_counter() - started)
            if turn >= WARMING:
                first.append(taken[0])
                later += taken[1:]
            for handle in handles:
                end(handle)
            time.sleep(2.0)
        reactor.call(client.close)
        wait_for_private(process)
        reactor.stop()
        for turn in range(self.times(25) + WARMING):
            boxes, taken = [], []
            for _ in range(4):
                started = time.perf_counter()
                boxes.append(self.pool.sandbox())
                taken.append(time.perf_counter() - started)
            started = time.perf_counter()
            sound(boxes[0].run(bench.trivial(turn)))
            if turn >= WARMING:
                on_ready += taken[1:]
                answered.append(time.perf_counter() - started)
            for box in boxes:
                box.close()
            time.sleep(2.0)
        figures: dict[str, Any] = {"first_after_two_idle_seconds": spread(first), "those_after_it": spread(later)}
        figures["sandboxes_of_the_pool_after_the_first"] = spread(on_ready)
        figures["first_call_in_one"] = spread(answered)
        figures["bar"] = "under 1 ms from the pool (median)"
        figures["met"] = max(spread(taken)["p50_ms"] for taken in (first, later, on_ready)) < 1.0
        return figures

    def branch(self) -> dict[str, Any]:
        found = bench.branches(self.pool, 8, self.times(8))
        started = time.perf_counter()
        for _ in range(8):
            subprocess.run(self._cold(), input=b"", capture_output=True, check=True)
        return {
            "all_eight_answering": shown(found),
            "eight_cold_starts_in_sequence_ms": round(1000 * (time.perf_counter() - started)),
            "bar": "600 ms (median)",
            "met": found.p50 <= 600,
        }

    def _cold(self) -> list[str]:
        """`runsc run` of a program that prints, without this project."""
        root = next((self.folder / "roots").glob("root-*"))
        bundle = self.folder / "cold"
        bundle.mkdir(exist_ok=True)
        process = {
            "user": {"uid": 1000, "gid": 1000},
            "args": ["/usr/bin/python3", "-I", "-S", "-c", "print(1)"],
            "cwd": "/",
            "env": ["PATH=/usr/bin"],
        }
        spec = {
            "ociVersion": "1.0.2",
            "process": process,
            "root": {"path": str(root), "readonly": True},
            "mounts": [],
            "linux": {"namespaces": [{"type": kind} for kind in ("pid", "ipc", "uts", "mount", "network")]},
        }
        (bundle / "config.json").write_text(json.dumps(spec))
        name = f"cold-{os.getpid()}-{time.monotonic_ns()}"
        return [
            str(find_runsc()),
            "--root",
            str(self.folder / "cold-state"),
            *FLAGS,
            "run",
            "--bundle",
            str(bundle),
            name,
        ]

    # sessions

    def short_sessions(self) -> dict[str, Any]:
        figures: dict[str, Any] = {}
        bars = {Tier.SHARED: 2_000, Tier.PROCESS: 70, Tier.SANDBOX: 10}
        for tier, bar in bars.items():
            wide = {Tier.SHARED: 16, Tier.PROCESS: 16, Tier.SANDBOX: 6}[tier]
            number = self.times({Tier.SHARED: 20_000, Tier.PROCESS: 1_400, Tier.SANDBOX: 200}[tier])
            figures[tier.value] = round(sessions_per_second(self.pool, tier, wide=wide, sessions=number), 1)
            figures[f"{tier.value}_met"] = figures[tier.value] >= bar
        figures["bar"] = "2,000 / 70 / 10 a second"
        figures["met"] = all(figures[f"{tier.value}_met"] for tier in bars)
        return figures

    def idle_memory(self) -> dict[str, Any]:
        found = bench.idle(self.pool, 16, settle_seconds=5.0)
        return {
            "pss_mib_mean": round(found.mib, 1),
            "sandboxes": 16,
            "bar": "25 MiB",
            "met": found.pss and found.mib <= 25,
        }

    def leftovers(self) -> dict[str, Any]:
        return leftovers.measure(self.times(1000), self.times(200), self.times(50), seed=1)


SCENARIOS = (
    "warm_call",
    "throughput",
    "queue",
    "snapshot",
    "rollback",
    "hand_over",
    "branch",
    "short_sessions",
    "idle_memory",
    "leftovers",
)


@contextmanager
def built(scale: float) -> Iterator[Bench]:
    with tempfile.TemporaryDirectory(prefix="assay-bench-") as folder:
        found = Bench(Path(folder), scale)
        try:
            yield found
        finally:
            found.pool.close()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there as JSON")
    parser.add_argument("--only", help=f"of {', '.join(SCENARIOS)}; separated by commas")
    parser.add_argument("--quick", action="store_true", help="a tenth of the repetitions")
    options = parser.parse_args()
    wanted = options.only.split(",") if options.only else list(SCENARIOS)
    unknown = set(wanted) - set(SCENARIOS)
    if unknown:
        parser.error(f"no such scenario: {', '.join(sorted(unknown))}")
    figures: dict[str, Any] = {
        "cores": os.cpu_count(), "load": round(os.getloadavg()[0], 2), "kernel": platform.release()
    }  # fmt: skip
    with built(0.1 if options.quick else 1.0) as one:
        for name in wanted:
            figures[name] = getattr(one, name)()
            print(f"{name}:")
            for key, figure in figures[name].items():
                print(f"    {key:36} {figure}", flush=True)
        figures["peak_rss_mib_of_this_process"] = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1)
    missed = [name for name in wanted if figures[name].get("met") is False]
    print(f"bars missed: {', '.join(missed) or 'none'}")
    write_run(figures, options.json)
    return 1 if missed else 0


if __name__ == "__main__":
    raise SystemExit(main())
