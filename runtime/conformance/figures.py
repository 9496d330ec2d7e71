"""What things cost here: one function for each figure, given a pool and how often.

What always holds: every figure is the wall clock of its caller, taken from work that was really done and whose answers
were right; each snippet is a new text, so that nothing is answered from a cache; what a function opened is closed when
it returns. A call that failed raises Violation. Not promised: that a machine with other work says the same twice.
"""

from __future__ import annotations

import contextlib
import subprocess
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from statistics import median, quantiles
from typing import NamedTuple

from runtime.conformance import host
from runtime.conformance.check import Violation, answered
from runtime.sandbox import CallResult, Limits, Sandbox, SessionPool, SnapshotId, Tier

CALLER = "figures"
PYTHON = "/usr/bin/python3"
LIMITS = Limits(call_seconds=10.0, snapshots=1_000, calls=100_000)
READY_SECONDS = 0.4
"""Between two uses of copies restored ahead: time for the next to be restored."""


class Spread(NamedTuple):
    """Milliseconds."""

    p50: float
    p95: float
    times: int


def spread(seconds: Sequence[float]) -> Spread:
    """Of at least one measurement."""
    cuts = quantiles(seconds, n=20, method="inclusive") if len(seconds) > 1 else list(seconds) * 19
    return Spread(round(1000 * median(seconds), 3), round(1000 * cuts[18], 3), len(seconds))


def timed(action: Callable[[int], object], times: int) -> list[float]:
    """Seconds that each of the calls of `action` took."""
    taken = []
    for number in range(times):
        started = time.perf_counter()
        action(number)
        taken.append(time.perf_counter() - started)
    return taken


def trivial(number: int) -> str:
    return f"x = {number}\nprint(x + 1)"


def heap(mib: int) -> str:
    """Code that fills that much memory, page by page."""
    return f"kept = 7\nheap = bytearray({mib} << 20)\nfor i in range(0, len(heap), 4096): heap[i] = 7"


def python_c(times: int) -> Spread:
    """A plain `python3 -c`, without a sandbox: what every other figure is to be compared with."""
    command = [PYTHON if Path(PYTHON).exists() else "python3", "-c", "print(1)"]
    return spread(timed(lambda _: subprocess.run(command, capture_output=True, check=True), times))


def warm_calls(pool: SessionPool, tier: Tier, times: int) -> Spread:
    """A stateful call of a session that has answered before."""
    with pool.open(tier=tier, caller=CALLER) as session:
        answered(session.run("x = 0"))

        def call(number: int) -> None:
            if answered(session.run(trivial(number))) != f"{number + 1}\n":
                raise Violation("a call was answered with the output of another")

        return spread(timed(call, times))


def calls_per_second(pool: SessionPool, sessions: int, calls: int, tier: Tier = Tier.SHARED) -> float:
    """Trivial calls over several sessions at once, all of them asked for before the first is answered."""
    with contextlib.ExitStack() as stack:
        opened = [stack.enter_context(pool.open(tier=tier, caller=CALLER)) for _ in range(sessions)]
        for session in opened:
            answered(session.run("x = 0"))
        started = time.perf_counter()
        futures = [opened[number % sessions].start(trivial(number)) for number in range(calls)]
        for future in futures:
            answered(future.result())
        return calls / (time.perf_counter() - started)


def sessions_per_second(pool: SessionPool, tier: Tier, *, wide: int, sessions: int) -> float:
    """Sessions opened, called twice and closed, `wide` at a time, without a thread for each."""
    done: Future[None] = Future()
    opened = closed = 0

    def begin() -> None:
        nonlocal opened
        if opened >= sessions or done.done():
            return
        opened += 1
        session = pool.open(tier=tier, caller=CALLER)
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


def opened(pool: SessionPool, times: int) -> Spread:
    """A sandbox of its own from asking for it to its first answer, where the ones before have just been closed."""

    def once(number: int) -> None:
        with contextlib.closing(pool.sandbox(LIMITS, caller=CALLER)) as box:
            answered(box.run(trivial(number)))

    return spread(timed(once, times))


def snapshots(pool: SessionPool, times: int, *, heap_mib: int = 0) -> Spread:
    """A snapshot of a live sandbox that goes on running. Each is forgotten before the next."""
    taken = []
    with contextlib.closing(pool.sandbox(LIMITS, caller=CALLER)) as box:
        answered(box.run(heap(heap_mib)))
        pool.forget(box.snapshot())
        for _ in range(times):
            started = time.perf_counter()
            kept = box.snapshot()
            taken.append(time.perf_counter() - started)
            pool.forget(kept)
    return spread(taken)


def rollbacks(pool: SessionPool, times: int, *, heap_mib: int = 0, ready: bool = False) -> Spread:
    """Back to a snapshot, with an answered call. `ready`: copies were restored ahead."""

    def back(box: Sandbox, kept: SnapshotId) -> None:
        box.restore(kept)
        if answered(box.run("print(kept)")) != "7\n":
            raise Violation("a rollback lost a name")

    with contextlib.closing(pool.sandbox(LIMITS, caller=CALLER)) as box:
        answered(box.run(heap(heap_mib)))
        kept = box.snapshot()
        if not ready:
            return spread(timed(lambda _: back(box, kept), times))
        box.prepare(kept, 1)
        taken = []
        for _ in range(times):
            time.sleep(READY_SECONDS)
            taken += timed(lambda _: back(box, kept), 1)
        box.prepare(kept, 0)
        return spread(taken)


def branches(pool: SessionPool, ways: int, times: int) -> Spread:
    """From the wish for that many branches until all have answered."""
    taken = []
    with contextlib.closing(pool.sandbox(LIMITS, caller=CALLER)) as box, ThreadPoolExecutor(ways) as threads:
        answered(box.run("kept = 7"))
        kept = box.snapshot()
        for _ in range(times):
            with contextlib.ExitStack() as stack:
                started = time.perf_counter()
                grown = box.fork(kept, ways)
                for branch in grown:
                    stack.callback(branch.close)
                said = list(threads.map(lambda branch: answered(branch.run("print(kept)")), grown))
                taken.append(time.perf_counter() - started)
            if said != ["7\n"] * ways:
                raise Violation("a branch lost a name")
    return spread(taken)


class Idle(NamedTuple):
    mib: float
    """Of one sandbox that has answered a call and waits."""
    pss: bool
    """Whether pages that several share are counted by their share; that only root can see. Otherwise it is what the
    control group is charged."""


def idle(pool: SessionPool, sandboxes: int, *, settle_seconds: float = 1.0) -> Idle:
    """Memory of all processes of a sandbox, ours and its own, over several that wait at the same time."""
    with contextlib.ExitStack() as stack:
        boxes = [stack.enter_context(contextlib.closing(pool.sandbox(LIMITS, caller=CALLER))) for _ in range(sandboxes)]
        for number, box in enumerate(boxes):
            answered(box.run(trivial(number)))
        time.sleep(settle_seconds)
        groups = [host.groups(box.id) for box in boxes]
        shares = [host.pss_mib(host.processes(folders)) for folders in groups]
        known = [share for share in shares if share]
        if len(known) == len(shares):
            return Idle(sum(known) / sandboxes, pss=True)
        return Idle(sum(map(host.charged_mib, groups)) / sandboxes, pss=False)
