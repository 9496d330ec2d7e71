"""Where sandboxes come from: ready ones first, else started in turn, and restored ahead of need when nobody waits.

What always holds: every wish is answered once, unless it is cancelled; at most `launches` starts are under way and
`boxes` sandboxes alive; those who wait go before what is done ahead of need; a sandbox that was started for a wish that
is no longer there goes to the next who wants such a one, or waits, or ends. Where it cannot be restored from its golden
image, that is thrown away and the next fresh start makes another.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from runtime.backends.backend import Cause
from runtime.broker.boxes import RESEED_SECONDS, Boxes, Live, State
from runtime.broker.demand import Demand
from runtime.broker.golden import Golden
from runtime.broker.queue import Place, Queue
from runtime.broker.ready import COPY_MIB, Ready, available_mib
from runtime.broker.spans import Spans
from runtime.broker.starts import Outcome, Source, Starts
from runtime.broker.store import INNER, Store
from runtime.errors import SandboxError
from runtime.guest.wire import Op
from runtime.reactor import Reactor
from runtime.sandbox import Priority
from runtime.settings import BrokerSettings

REFILL_SECONDS = 0.1
"""After a hand-over, before the next copy is restored: who takes one sandbox often takes several, and the first call
there should not compete with a restore."""
TICK_SECONDS = 1.0
PAUSE_SECONDS = 5.0
"""After a start that failed, before another of its kind is made ahead of need."""
ATTEMPTS = 3


@dataclass(eq=False)
class Wish:
    """A request for a sandbox, from `ask` to its answer."""

    source: Source
    reseed: bool
    given: Callable[[Live | SandboxError], None]
    """Gets a ready box, to be held at once."""
    since: float
    place: Place[str] | None = None
    over: bool = False
    """Answered or cancelled."""


class Supply:
    COUNTED = ("launches_cold", "launches_restored", "ready_hits", "ready_lost", "failed_starts", "snapshots_taken")

    def __init__(self, settings: BrokerSettings, reactor: Reactor, golden: Golden, store: Store) -> None:
        self.boxes = Boxes(reactor, self._pump, self._stirred, freezes=settings.launches)
        self.ready = Ready()
        self.counts: Counter[str] = Counter()
        self.spans = Spans()
        self._settings, self._reactor = settings, reactor
        self._store = store
        self._starts = Starts(self.boxes, golden, store, self.counts, self.spans)
        store.removed = self._snapshot_removed
        self._queue: Queue[str, Wish] = Queue(settings.waiting)
        self._sources: dict[str, Source] = {}
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
        source: Source,
        *,
        caller: str,
        priority: Priority,
        given: Callable[[Live | SandboxError], None],
        reseed: bool = False,
    ) -> Wish:
        """Raises BusyError when too many wait. `given` may come before this returns."""
        wish = Wish(source, reseed, given, time.monotonic())
        wish.place = self._queue.add(wish, source.key, caller=caller, priority=priority)
        self._sources[source.key] = source
        if source.snapshot is not None:
            self._store.refer(source.snapshot, INNER)
        elif source.profile.program is None:  # who holds a program's boxes keeps spare ones as needed
            self._demand.asked(source.key, wish.since)
        self._match(source.key)
        self._pump()
        return wish

    def cancel(self, wish: Wish) -> None:
        if not wish.over:
            assert wish.place is not None
            self._queue.cancel(wish.place)
            self._settle(wish)

    def prepare(self, source: Source, copies: int) -> None:
        """How many copies of a snapshot to keep ready, over all who want some."""
        self._sources[source.key] = source
        self._prepared[source.key] = copies
        self._refill_soon(0.0)

    def prepare_fewer(self, key: str, copies: int) -> None:
        if copies:
            self._prepared[key] = copies
        else:
            self._prepared.pop(key, None)
        self._refill_soon(0.0)

    def close(self) -> None:
        self._closed = True
        self._starts.close()
        self._timer.cancel()
        self.boxes.close()

    def _match(self, key: str) -> None:
        """Ready ones to those who wait for them."""
        while self.ready.count(key):
            wish = self._queue.serve(key)
            if wish is None:
                return
            live = self.ready.take(key)
            assert live is not None
            now = time.monotonic()
            self.spans.add("hand_over", now - wish.since, now)
            self.counts["ready_hits"] += 1
            self._give(live, wish)

    def _give(self, live: Live, wish: Wish) -> None:
        if not wish.reseed:
            self._hand_over(live, wish)
            return

        def reseeded(problem: SandboxError | None) -> None:
            if wish.over:
                self.boxes.end(live, Cause.ASKED)  # it no longer goes on as its snapshot would have
            elif problem is None:
                self._hand_over(live, wish)
            else:
                self._answer(wish, problem)

        self.boxes.greet(live, Op.RESEED, RESEED_SECONDS, reseeded)

    def _hand_over(self, live: Live, wish: Wish) -> None:
        now = time.monotonic()
        self.spans.add("wait", now - wish.since, now)
        self._answer(wish, live)
        self._refill_soon(REFILL_SECONDS)

    def _answer(self, wish: Wish, answer: Live | SandboxError) -> None:
        self._settle(wish)
        wish.given(answer)

    def _settle(self, wish: Wish) -> None:
        wish.over = True
        if wish.source.snapshot is not None:
            self._store.release(wish.source.snapshot, INNER)

    def _pump(self) -> None:
        """Starts what is waited for, as far as there is room."""
        while not self._closed and self._starting < self._settings.launches:
            key = self._queue.next_start(self._blocked)
            if key is None:
                self._refill_soon(REFILL_SECONDS)
                return
            if not self._has_room():
                return
            self._start(self._sources[key])

    def _blocked(self, key: str) -> bool:
        return self._starts.blocked(self._sources[key], self._pump)

    def _has_room(self) -> bool:
        """A sandbox that waits for nobody makes room for one that somebody waits for."""
        if len(self.boxes.alive) < self._settings.boxes:
            return True
        going = any(live.state is State.ENDING for live in self.boxes.alive.values())
        if not going and len(self.ready):
            counts = self.ready.counts()
            least = min(counts, key=lambda key: (key in self._prepared, self._demand.rate(key) / counts[key]))
            live = self.ready.take(least)
            assert live is not None
            self.boxes.end(live, Cause.ASKED)
        return False

    def _start(self, source: Source) -> None:
        self._queue.started(source.key)
        self._starting += 1
        self._starts.start(source, self._pump, lambda outcome: self._finish(source, outcome))

    def _finish(self, source: Source, outcome: Outcome) -> None:
        """A start is over: whoever is next gets what came of it."""
        key, live = source.key, outcome.live
        self._starting -= 1
        self._queue.finished(key)
        if self._closed:
            return
        if isinstance(live, Live):
            self._failed.pop(key, None)
            self._demand.refilled(key, outcome.seconds)
            wish = self._queue.serve(key)
            if wish is not None:
                self._give(live, wish)
            elif live.state is State.READY:
                self.ready.put(live)
        else:
            self.counts["failed_starts"] += 1
            self._failed[key] += 1
            self._paused[key] = time.monotonic() + PAUSE_SECONDS
            if not outcome.blames_image or self._failed[key] >= ATTEMPTS * self._settings.launches:
                wish = self._queue.serve(key)
                if wish is not None:
                    self._answer(wish, live)
        self._pump()

    def _stirred(self, live: Live) -> None:
        self.counts["ready_lost"] += 1
        self.ready.remove(live)

    def _snapshot_removed(self, key: str) -> None:
        self._prepared.pop(key, None)
        while (live := self.ready.take(key)) is not None:
            self.boxes.end(live, Cause.ASKED)

    def _tick(self) -> None:
        if not self._closed:
            self._timer = self._reactor.after(TICK_SECONDS, self._tick)
            self._forget_unused()
            self._refill_soon(0.0)

    def _forget_unused(self) -> None:
        for key in list(self._sources):
            used = key in self._prepared or self._demand.rate(key) or self.ready.count(key)
            if not used and not self._queue.starting(key) and not self._queue.waits_for(key):
                del self._sources[key]
                self._failed.pop(key, None)
                self._paused.pop(key, None)

    def _refill_soon(self, seconds: float) -> None:
        if not self._refill_due and not self._closed:
            self._refill_due = True
            self._reactor.after(seconds, self._refill)

    def _refill(self) -> None:
        """Restores ahead what will be wanted, and ends what no longer will."""
        self._refill_due = False
        if self._closed or len(self._queue):
            return
        targets = self.targets()
        for key, count in self.ready.counts().items():
            if count > targets.get(key, 0):
                live = self.ready.take(key)
                assert live is not None
                self.boxes.end(live, Cause.ASKED)
        for key, wanted in targets.items():
            while (
                self.ready.count(key) + self._queue.starting(key) < wanted
                and self._starting < max(1, self._settings.launches - 1)
                and len(self.boxes.alive) < self._settings.boxes
                and time.monotonic() >= self._paused.get(key, 0.0)
                and not self._blocked(key)
            ):
                self._start(self._sources[key])

    def targets(self) -> dict[str, int]:
        """How many of which to have ready now: copies that were asked for by name first, then what demand says."""
        room = len(self.ready) + int((available_mib() - self._settings.memory_reserve_mib) / COPY_MIB)
        prepared = {}
        for key, copies in self._prepared.items():
            prepared[key] = max(0, min(copies, room))
            room -= prepared[key]
        return prepared | self._demand.targets(time.monotonic(), max(0, min(self._settings.ready, room)))
