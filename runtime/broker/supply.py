"""Where sandboxes come from: ready ones first, else started in turn, and restored ahead of need when nobody waits.

What always holds: every wish is answered once, unless it is cancelled; at most `launches` starts are under way and
`boxes` sandboxes alive; those who wait go before what is done ahead of need; a sandbox that was started for a wish that
is no longer there goes to the next who wants such a one, or waits, or ends. Where it cannot be restored from its golden
image, that is thrown away and the next fresh start makes another.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from runtime.backends.backend import Backend, Cause
from runtime.broker.boxes import RESEED_SECONDS, START_SECONDS, Boxes, Live, State
from runtime.broker.demand import Demand
from runtime.broker.golden import Golden, Kind, Standing
from runtime.broker.queue import Place, Queue
from runtime.broker.ready import COPY_MIB, Ready, available_mib
from runtime.broker.spans import Spans
from runtime.broker.store import INNER, Snapshot, Store
from runtime.errors import InfrastructureError, SandboxError
from runtime.guest.wire import Op
from runtime.profile import Profile
from runtime.reactor import Reactor
from runtime.sandbox import Priority
from runtime.settings import BrokerSettings

log = logging.getLogger(__name__)
REFILL_SECONDS = 0.01
"""After a hand-over, before the next copy is restored: who takes one sandbox often takes several."""
TICK_SECONDS = 1.0
PAUSE_SECONDS = 5.0
"""After a start that failed, before another of its kind is made ahead of need."""
ATTEMPTS = 3


@dataclass(frozen=True)
class Source:
    """What a sandbox is made from: a golden image, or a snapshot."""

    key: str
    profile: Profile
    backend: Backend
    kind: Kind | None = None
    snapshot: Snapshot | None = None


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
        self._golden, self._store = golden, store
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
        else:
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
        self.spans.add("hand_over", now - wish.since, now)
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
        """While its golden image is looked at or made."""
        kind = self._sources[key].kind
        if kind is None:
            return False
        standing = self._golden.standing(kind)
        if standing is Standing.UNKNOWN:
            self._golden.look(kind, self._pump)
            return True
        return standing is Standing.BUSY

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
        begun = time.monotonic()
        kind, snapshot = source.kind, source.snapshot
        standing = self._golden.standing(kind) if kind is not None else Standing.NONE
        image, op, parent = None, None, ""
        if snapshot is not None:
            self._store.refer(snapshot, INNER)
            image, op, parent = snapshot.image, Op.PING, snapshot.key
        elif kind is not None and standing is Standing.HERE:
            image, op = self._golden.image(kind), Op.PING
        elif kind is not None and standing is Standing.MISSING:
            self._golden.begin(kind)

        def done(live: Live | SandboxError) -> None:
            if snapshot is not None:
                self._store.release(snapshot, INNER)
            if isinstance(live, Live):
                now = time.monotonic()
                took = now - begun
                self.spans.add("start" if image is None else "restore", took, now)
                self._demand.refilled(source.key, took)
                self.counts["launches_cold" if image is None else "launches_restored"] += 1
            if kind is not None and image is None and standing is Standing.MISSING and not self._closed:
                self._freeze(source, kind, live)
            else:
                self._finish(source, live, from_golden=kind is not None and image is not None)

        self.boxes.start(source.backend, source.profile, key=source.key, image=image, parent=parent, op=op, done=done)

    def _freeze(self, source: Source, kind: Kind, live: Live | SandboxError) -> None:
        """The first of its kind becomes the golden image, and then goes where it was wanted."""
        if isinstance(live, SandboxError):
            self._golden.cannot(kind, live)
            self._finish(source, live)
            return
        try:
            new = self._golden.folder_for(kind)
        except OSError as error:
            self._golden.cannot(kind, error)
            self._finish(source, live)
            return

        def frozen(problem: SandboxError | None) -> None:
            if problem is None:
                self._golden.keep(kind, new, self._pump)
            else:
                self._golden.abandon(kind, new, problem)
            if live.state is State.READY:
                self.boxes.greet(live, Op.PING, START_SECONDS, greeted)
            else:
                self._finish(source, InfrastructureError(f"sandbox {live.id} ended while its image was made"))

        def greeted(problem: SandboxError | None) -> None:
            self._finish(source, live if problem is None else problem)

        self.boxes.freeze(live, new / "image", frozen)

    def _finish(self, source: Source, live: Live | SandboxError, *, from_golden: bool = False) -> None:
        """A start is over: whoever is next gets what came of it."""
        key = source.key
        self._starting -= 1
        self._queue.finished(key)
        if self._closed:
            return
        if isinstance(live, Live):
            self._failed.pop(key, None)
            wish = self._queue.serve(key)
            if wish is not None:
                self._give(live, wish)
            elif live.state is State.READY:
                self.ready.put(live)
        else:
            self.counts["failed_starts"] += 1
            self._failed[key] += 1
            self._paused[key] = time.monotonic() + PAUSE_SECONDS
            if from_golden and source.kind is not None:
                log.warning("a sandbox could not be restored from its image: %s", live)
                self._golden.drop(source.kind)
            if not from_golden or self._failed[key] >= ATTEMPTS * self._settings.launches:
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
