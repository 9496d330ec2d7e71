"""Warm pool: hands out sandboxes, ready ones first, else started in turn, and restores ahead when nobody waits.

Invariants: every request is answered once, unless cancelled; at most `launches` starts run and `boxes` sandboxes live;
waiting requests precede work ahead of demand; a sandbox whose request has gone is given to the next matching request,
kept ready, or ended. A ready sandbox was answered by its guest, and no holder's code has run in it since its image (a
snapshot copy continues from there, and only for users of that snapshot). A golden image that cannot be restored is
discarded, and the next fresh start makes another.
"""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from runtime.broker.autoscale import Demand
from runtime.broker.base_images import BaseImages, StartSource
from runtime.broker.boxes import RESEED_SECONDS, BrokerBoxes, Live, State
from runtime.broker.queue import Queue, QueuePosition
from runtime.broker.spans import Spans
from runtime.broker.starts import BoxStarts, StartOutcome
from runtime.broker.store import INNER, Store
from runtime.errors import SandboxError
from runtime.guest.wire import Op
from runtime.profile import Cause
from runtime.reactor import Reactor
from runtime.sandbox import Priority
from runtime.settings import BrokerSettings

REFILL_SECONDS = 0.1
"""Delay between a hand-over and the next restore, in seconds: more requests often follow, and the first call should not
compete with a restore."""
TICK_SECONDS = 1.0
PAUSE_SECONDS = 5.0
"""Delay after a failed start before another of its kind is made ahead of demand, in seconds."""
ATTEMPTS = 3
COPY_MIB = 32.0
"""Estimated memory of a ready sandbox, in MiB."""


@dataclass(eq=False)
class BoxRequest:
    """Request for a sandbox, from `ask` to its answer."""

    source: StartSource
    reseed: bool
    on_ready: Callable[[Live | SandboxError], None]
    """Receives a ready box, which must be held immediately."""
    since: float
    position: QueuePosition[str] | None = None
    over: bool = False
    """True once answered or cancelled."""


class WarmPool:
    COUNTED = ("launches_cold", "launches_restored", "ready_hits", "ready_lost", "failed_starts", "snapshots_taken")

    def __init__(self, settings: BrokerSettings, reactor: Reactor, base_images: BaseImages, store: Store) -> None:
        self.boxes = BrokerBoxes(reactor, self._pump, self._ready_lost, freezes=settings.launches)
        self.ready: list[Live] = []
        """Ready boxes without a request, the oldest first."""
        self.counts: Counter[str] = Counter()
        self.spans = Spans()
        self._settings, self._reactor = settings, reactor
        self._store = store
        self._starts = BoxStarts(self.boxes, base_images, store, self.counts, self.spans, self._pump)
        store.removed = self._snapshot_removed
        self._queue: Queue[str, BoxRequest] = Queue(settings.waiting)
        self._sources: dict[str, StartSource] = {}
        self._demand: Demand[str] = Demand()
        self._prepared: dict[str, int] = {}
        self._starting = 0
        self._failed: Counter[str] = Counter()
        self._paused: dict[str, float] = {}
        self._closed = False
        self._refill_due = False
        self._timer = reactor.after(TICK_SECONDS, self._tick)

    @property
    def waiting(self) -> int:
        return len(self._queue)

    def ask(
        self,
        source: StartSource,
        *,
        caller: str,
        priority: Priority,
        on_ready: Callable[[Live | SandboxError], None],
        reseed: bool = False,
    ) -> BoxRequest:
        """Requests a sandbox, ready or new; may call `on_ready` before returning. Raises BusyError if too many wait."""
        request = BoxRequest(source, reseed, on_ready, time.monotonic())
        request.position = self._queue.add(request, source.key, caller=caller, priority=priority)
        self._sources[source.key] = source
        if source.snapshot is not None:
            self._store.refer(source.snapshot, INNER)
        elif source.profile.program is None:  # holders of program boxes keep their own spares
            self._demand.asked(source.key, request.since)
        self._match(source.key)
        self._pump()
        return request

    def cancel(self, request: BoxRequest) -> None:
        if not request.over:
            assert request.position is not None
            self._queue.cancel(request.position)
            self._settle(request)

    def prepare(self, key: str, copies: int, source: StartSource | None = None) -> None:
        """Sets how many sandboxes of a snapshot stay ready for all connections. The first call passes its source."""
        if source is not None:
            self._sources[key] = source
        self._prepared[key] = copies
        if not copies:
            del self._prepared[key]
        self._refill_soon(0.0)

    def close(self) -> None:
        self._closed = True
        self._starts.close()
        self._timer.cancel()
        self.boxes.close()

    def _match(self, key: str) -> None:
        """Gives ready boxes of this key to the requests that wait for one."""
        while (live := self._oldest(key)) is not None and (request := self._queue.serve(key)) is not None:
            self.ready.remove(live)
            now = time.monotonic()
            self.spans.add("hand_over", now - request.since, now)
            self.counts["ready_hits"] += 1
            self._give(live, request)

    def _give(self, live: Live, request: BoxRequest) -> None:
        if not request.reseed:
            self._hand_over(live, request)
            return

        def reseeded(problem: SandboxError | None) -> None:
            if request.over:
                self.boxes.end(live, Cause.ASKED)  # reseeded, so it no longer matches its snapshot
            elif problem is None:
                self._hand_over(live, request)
            else:
                self._answer(request, problem)

        self.boxes.handshake(live, Op.RESEED, RESEED_SECONDS, reseeded)

    def _hand_over(self, live: Live, request: BoxRequest) -> None:
        now = time.monotonic()
        self.spans.add("wait", now - request.since, now)
        self._answer(request, live)
        self._refill_soon(REFILL_SECONDS)

    def _answer(self, request: BoxRequest, answer: Live | SandboxError) -> None:
        self._settle(request)
        request.on_ready(answer)

    def _settle(self, request: BoxRequest) -> None:
        request.over = True
        if request.source.snapshot is not None:
            self._store.release(request.source.snapshot, INNER)

    def _pump(self) -> None:
        """Starts boxes for waiting requests, as far as limits permit."""
        while not self._closed and self._starting < self._settings.launches:
            key = self._queue.next_start(self._blocked)
            if key is None:
                self._refill_soon(REFILL_SECONDS)
                return
            if not self._has_room():
                return
            self._start(self._sources[key])

    def _blocked(self, key: str) -> bool:
        return self._starts.blocked(self._sources[key])

    def _has_room(self) -> bool:
        """True if another box may start; otherwise ends a ready box to make room."""
        if len(self.boxes.alive) < self._settings.boxes:
            return True
        going = any(live.state is State.ENDING for live in self.boxes.alive.values())
        if not going and self.ready:
            counts = self._counts()
            least = min(counts, key=lambda key: (key in self._prepared, self._demand.rate(key) / counts[key]))
            self._end_ready(least)
        return False

    def _counts(self) -> Counter[str]:
        """Returns the number of ready boxes by key."""
        return Counter(live.key for live in self.ready)

    def _oldest(self, key: str) -> Live | None:
        return next((live for live in self.ready if live.key == key), None)

    def _end_ready(self, key: str) -> bool:
        """Ends one ready box of a key; True if there was one."""
        live = self._oldest(key)
        if live is not None:
            self.ready.remove(live)
            self.boxes.end(live, Cause.ASKED)
        return live is not None

    def _start(self, source: StartSource) -> None:
        self._queue.started(source.key)
        self._starting += 1
        self._starts.start(source, lambda outcome: self._finish(source, outcome))

    def _finish(self, source: StartSource, outcome: StartOutcome) -> None:
        """Handles the result of a sandbox start: the next request for its key gets the box or the error."""
        key, live = source.key, outcome.live
        self._starting -= 1
        self._queue.finished(key)
        if self._closed:
            return
        if isinstance(live, Live):
            self._failed.pop(key, None)
            self._demand.refilled(key, outcome.seconds)
            request = self._queue.serve(key)
            if request is not None:
                self._give(live, request)
            elif live.state is State.READY:
                self.ready.append(live)
        else:
            self.counts["failed_starts"] += 1
            self._failed[key] += 1
            self._paused[key] = time.monotonic() + PAUSE_SECONDS
            if not outcome.blames_image or self._failed[key] >= ATTEMPTS * self._settings.launches:
                request = self._queue.serve(key)
                if request is not None:
                    self._answer(request, live)
        self._pump()

    def _ready_lost(self, live: Live) -> None:
        self.counts["ready_lost"] += 1
        with contextlib.suppress(ValueError):  # being handed over, or frozen as a golden image
            self.ready.remove(live)

    def _snapshot_removed(self, key: str) -> None:
        self._prepared.pop(key, None)
        while self._end_ready(key):
            pass

    def _tick(self) -> None:
        self._timer = self._reactor.after(TICK_SECONDS, self._tick)
        self._forget_unused()
        self._refill_soon(0.0)

    def _forget_unused(self) -> None:
        ready = self._counts()
        for key in list(self._sources):
            used = key in self._prepared or self._demand.rate(key) or ready[key]
            if not used and not self._queue.starting(key) and not self._queue.waits_for(key):
                del self._sources[key]
                self._failed.pop(key, None)
                self._paused.pop(key, None)

    def _refill_soon(self, seconds: float) -> None:
        if not self._refill_due and not self._closed:
            self._refill_due = True
            self._reactor.after(seconds, self._refill)

    def _refill(self) -> None:
        """Starts boxes ahead of demand, and ends surplus ready ones."""
        self._refill_due = False
        if self._closed or len(self._queue):
            return
        targets = self.targets()
        for key, count in self._counts().items():
            if count > targets.get(key, 0):
                self._end_ready(key)
        for key, wanted in targets.items():
            while (
                self._counts()[key] + self._queue.starting(key) < wanted
                and self._starting < max(1, self._settings.launches - 1)
                and len(self.boxes.alive) < self._settings.boxes
                and time.monotonic() >= self._paused.get(key, 0.0)
                and not self._blocked(key)
            ):
                self._start(self._sources[key])

    def targets(self) -> dict[str, int]:
        """Returns how many boxes are to be kept ready, by key: prepared copies first, then by demand."""
        room = len(self.ready) + int((available_mib() - self._settings.memory_reserve_mib) / COPY_MIB)
        prepared = {}
        for key, copies in self._prepared.items():
            prepared[key] = max(0, min(copies, room))
            room -= prepared[key]
        return prepared | self._demand.targets(time.monotonic(), max(0, min(self._settings.ready, room)))


def available_mib(meminfo: Path = Path("/proc/meminfo")) -> float:
    """Returns the memory that programs may use without swapping, in MiB (proc(5), MemAvailable)."""
    for line in meminfo.read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) / 1024
    return 0.0
