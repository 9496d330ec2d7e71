"""Where sessions and sandboxes come from: one pool for a process, over one broker.

What always holds: nothing is started before somebody asks, the numbers of places in the settings are never exceeded
(who comes later waits), and `close` leaves nothing of it in the broker. The pool and everything in it is called from
one reactor; callers on other threads hand calls over and wait for futures.
"""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from functools import partial
from types import TracebackType
from typing import Self
from weakref import WeakSet

from runtime.backends.backend import BoxUsage
from runtime.backends.packages import find_packages
from runtime.errors import BadRequestError, BusyError, SandboxError
from runtime.launcher import Kept
from runtime.reactor import Reactor
from runtime.sandbox import NO_FILES, CallResult, CallStatus, Limits, Priority, Session, SnapshotId, Tier
from runtime.sessions.branches import Seed, new_files
from runtime.sessions.connection import Connection
from runtime.sessions.interpreters import Interpreters
from runtime.sessions.own import OwnSandbox, checked_snapshot
from runtime.sessions.places import Claim, Given, Wish
from runtime.sessions.profiles import PRELOADED
from runtime.sessions.seats import BUSY_HINT, Seats
from runtime.sessions.session import LiveSession
from runtime.sessions.starts import Starts
from runtime.sessions.worker import Worker
from runtime.sessions.yard import Yard
from runtime.settings import RuntimeSettings

CLOSE_SECONDS = 30.0
CALLER_CHARS = 200


class Sessions:
    """The one implementation of `runtime.sandbox.SessionPool`, and of `places.Places` for its sessions."""

    def __init__(self, settings: RuntimeSettings) -> None:
        """Raises RefusedError when sandboxes cannot be had here; starts none yet."""
        self.settings, self.limits = settings, settings.limits
        self.ready_modules = PRELOADED if find_packages(settings.own.packages) is not None else frozenset()
        self._reactor = Reactor()
        self._connection = Connection(self._reactor, settings, self._broker_died)
        self._starts = Starts(self._reactor, self._connection, settings, ended=self._worker_ended)
        self._interpreters = Interpreters(self._starts, settings.shared_workers)
        self._seats = Seats(self._reactor, self._starts, settings)
        self._yard = Yard(self._reactor, self._connection, self._starts)
        self._numbers = itertools.count(1)
        self._sessions: dict[int, LiveSession] = {}
        self._sandboxes: WeakSet[OwnSandbox] = WeakSet()
        self._calls: Counter[Tier] = Counter()
        self._statuses: Counter[CallStatus] = Counter()
        self._seconds: defaultdict[Tier, float] = defaultdict(float)
        self._closed = False
        try:
            self._connection.open()
        except BaseException:
            self._reactor.stop()
            raise

    # for callers, from any thread

    @property
    def backends(self) -> dict[str, str]:
        """Version by name, of those that the broker has."""
        return dict(self._connection.backends)

    def open(
        self,
        *,
        tier: Tier = Tier.SHARED,
        caller: str = "",
        priority: Priority = Priority.TRAINING,
        files: Mapping[str, bytes] = NO_FILES,
    ) -> Session:
        """As `SessionPool.open`; BadRequestError after `close`."""
        self._check(caller)
        begun_with = new_files(files, self.limits.work_mib)
        if begun_with:
            tier = Tier.SANDBOX
        if self._seats.waiting >= self.settings.waiting:
            raise BusyError(f"{self._seats.waiting} sessions wait for a place already", hint=BUSY_HINT)
        if tier is Tier.SHARED and not self._interpreters.begun:
            self._reactor.here(self._interpreters.begin)
        seed = Seed(tier, files=begun_with)
        return self._new(Wish(next(self._numbers), tier, caller=caller, priority=priority), seed)

    def sandbox(
        self,
        limits: Limits | None = None,
        *,
        snapshot: SnapshotId | None = None,
        caller: str = "",
        priority: Priority = Priority.TRAINING,
    ) -> OwnSandbox:
        """A sandbox of its own, with files and programs, outside the count of sessions. Returns when it is ready.

        What a snapshot's sandbox was built with (memory, processes, CPUs, /tmp and /work, descriptors, output, CPU time
        and life) comes from the snapshot; the rest of `limits` from here; `limits` of what is returned tells all.
        Raises InfrastructureError when it does not start, BusyError when too many wait, BadRequestError after `close`
        or when there is no such snapshot.
        """
        self._check(caller)
        wanted = limits or self.limits
        if snapshot is None:
            worker = self._yard.fresh(wanted, caller, priority)
        else:
            checked = checked_snapshot(snapshot)
            [worker] = self._yard.restored(checked, 1, reseed=False, caller=caller, priority=priority)
        return OwnSandbox(worker, wanted, self._yard, caller=caller, priority=priority, born=self._sandboxes.add)

    def forget(self, snapshot: SnapshotId) -> None:
        """Gives up a snapshot, a durable one too. Raises BadRequestError when there is none."""
        self._check("")
        checked = checked_snapshot(snapshot)

        def begin(done: Callable[[SandboxError | None], None]) -> None:
            self._connection.forget(checked, done)

        self._yard.ask(begin, "to forget a snapshot")

    def stats(self) -> dict[str, float]:
        """Calls, by tier and by status; seconds in calls, by tier; sandboxes started and killed; sessions now."""
        return {
            "calls": float(sum(self._calls.values())),
            **{f"calls_{tier}": float(calls) for tier, calls in sorted(self._calls.items())},
            **{f"status_{status}": float(calls) for status, calls in sorted(self._statuses.items())},
            **{f"seconds_{tier}": seconds for tier, seconds in sorted(self._seconds.items())},
            "seconds": float(sum(self._seconds.values())),
            "sandboxes_started": float(self._starts.started),
            "sandboxes_killed": float(self._starts.killed),
            "sessions": float(len(self._sessions)),
            "waiting": float(self._seats.waiting),
        }

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        ended: Future[None] = Future()

        def end() -> None:
            for session in list(self._sessions.values()):
                session.abandon("the pool of sessions was closed")
            for sandbox in list(self._sandboxes):
                sandbox.forbid()
            self._starts.close(partial(ended.set_result, None))

        self._reactor.call(end)
        try:
            ended.result(timeout=CLOSE_SECONDS)
        finally:
            self._connection.close()
            self._reactor.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # for sessions, on the reactor

    def claim(self, wish: Wish, given: Given) -> Claim:
        if wish.tier is Tier.SHARED:
            return self._interpreters.claim(wish, given)
        return self._seats.claim(wish, given)

    def born(self, parent: Wish, seeds: list[Seed]) -> list[Session]:
        children: list[Session] = []
        for seed in seeds:
            child = self._new(parent._replace(session=next(self._numbers), tier=seed.tier), seed)
            child.begin()
            children.append(child)
        return children

    def snapshot(self, worker: Worker, done: Callable[[Kept | SandboxError], None]) -> None:
        self._connection.snapshot(worker.handle, durable=False, label="fork", done=done)

    def forget_soon(self, snapshot: SnapshotId) -> None:
        self._connection.forget(snapshot, _no_matter)

    def measure(self, worker: Worker, done: Callable[[BoxUsage | SandboxError], None]) -> None:
        self._connection.usage(worker.handle, done)

    def count(self, result: CallResult) -> None:
        self._calls[result.tier] += 1
        self._statuses[result.status] += 1
        self._seconds[result.tier] += result.seconds

    def gone(self, session: int) -> None:
        self._sessions.pop(session, None)

    # inside

    def _check(self, caller: str) -> None:
        if self._closed:
            raise BadRequestError("the pool of sessions is closed")
        if len(caller) > CALLER_CHARS:
            raise BadRequestError(f"the name of a caller has at most {CALLER_CHARS} characters")

    def _new(self, wish: Wish, seed: Seed) -> LiveSession:
        session = LiveSession(wish, seed, self, self._reactor)
        self._sessions[wish.session] = session
        return session

    def _worker_ended(self, worker: Worker) -> None:
        self._interpreters.lost(worker)
        self._seats.lost(worker)

    def _broker_died(self) -> None:
        self._starts.broker_died()


def _no_matter(_problem: SandboxError | None) -> None:
    """What nobody needs any more, the broker drops with the connection at the latest."""
