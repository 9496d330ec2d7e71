"""Pool of sessions and sandboxes: one per process, over one broker.

Invariants: nothing starts before it is requested, the settings' numbers of places are never exceeded (later requests
wait), and `close` leaves nothing of it in the broker. The pool and everything in it runs on one reactor; callers on
other threads submit calls and wait for futures.
"""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from functools import partial
from weakref import WeakSet

from runtime.backends.packages import find_packages
from runtime.broker_api import Ticket
from runtime.errors import BadRequestError, BusyError, SandboxError
from runtime.profile import BoxUsage, PackageSet
from runtime.reactor import Reactor
from runtime.sandbox import NO_FILES, CallResult, CallStatus, ClosesOnExit, Limits, Priority, Session, SnapshotId, Tier
from runtime.sessions.branches import Seed, new_files
from runtime.sessions.connection import BrokerConnection
from runtime.sessions.own_sandbox import OwnSandbox, copy_of
from runtime.sessions.ports import OnPort, PortRequest
from runtime.sessions.session import LiveSession
from runtime.sessions.slots import BUSY_HINT, Interpreters, Slots
from runtime.sessions.starts import PRELOADED, SessionStarts
from runtime.sessions.waiter import Waiter
from runtime.sessions.worker import Worker
from runtime.settings import RuntimeSettings

CLOSE_SECONDS = 30.0
CALLER_CHARS = 200


class Sessions(ClosesOnExit):
    """Session pool on this host. Only implementation of `runtime.sandbox.SessionPool`, and of `ports.Ports`."""

    def __init__(self, settings: RuntimeSettings) -> None:
        """Creates the session pool and connects to the broker, without starting a sandbox. Raises RefusedError if
        sandboxes are unavailable."""
        self.settings, self.limits = settings, settings.limits
        self.ready_modules = PRELOADED if find_packages(settings.own.packages) is not None else frozenset()
        self._reactor = Reactor()
        self._connection = BrokerConnection(self._reactor, settings, self._broker_died)
        self._starts = SessionStarts(self._reactor, self._connection, settings, ended=self._worker_ended)
        self._interpreters = Interpreters(self._starts, settings.shared_workers)
        self._slots = Slots(self._reactor, self._starts, settings)
        self._waiter = Waiter(self._reactor, self._connection, self._starts)
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
        """Versions of the broker's sandbox backends, by name."""
        return dict(self._connection.backends)

    def open(
        self,
        *,
        tier: Tier = Tier.SHARED,
        caller: str = "",
        priority: Priority = Priority.TRAINING,
        files: Mapping[str, bytes] = NO_FILES,
        userland: bool = False,
        packages: PackageSet | None = None,
    ) -> Session:
        """Opens a session on this host like `SessionPool.open`. Raises BadRequestError after `close`."""
        self._check(caller)
        begun_with = new_files(files, self.limits.work_mib)
        if begun_with or userland or packages is not None:
            tier = Tier.SANDBOX
        if self._slots.waiting >= self.settings.waiting:
            raise BusyError(f"{self._slots.waiting} sessions are already waiting for a place", hint=BUSY_HINT)
        if tier is Tier.SHARED and not self._interpreters.begun:
            self._reactor.here(self._interpreters.begin)
        seed = Seed(tier, files=begun_with)
        terms = PortRequest(
            next(self._numbers), tier, caller=caller, priority=priority, userland=userland, packages=packages
        )
        return self._new(terms, seed)

    def sandbox(
        self,
        limits: Limits | None = None,
        *,
        userland: bool = False,
        packages: PackageSet | None = None,
        snapshot: SnapshotId | None = None,
        caller: str = "",
        priority: Priority = Priority.TRAINING,
    ) -> OwnSandbox:
        """Opens a separate sandbox with files and programs, not counted as a session. Returns when it is ready.

        A snapshot determines how its sandbox is built (memory, processes, CPUs, /tmp and /work, descriptors, output,
        CPU time and life, userland); other limits come from `limits`; the result's `limits` report all.

        Raises InfrastructureError if it does not start, BusyError if too many wait, BadRequestError after `close` or
        for an unknown snapshot.
        """
        self._check(caller)
        wanted = limits or self.limits
        fresh = partial(self._starts.profile, "sandbox", limits=wanted, userland=userland, packages=packages)
        source = fresh() if snapshot is None else copy_of(snapshot)
        [worker] = self._waiter.workers(source, caller=caller, priority=priority)
        return OwnSandbox(worker, wanted, self._waiter, caller=caller, priority=priority, born=self._sandboxes.add)

    def forget(self, snapshot: SnapshotId) -> None:
        """Deletes a snapshot, even a durable one. Raises BadRequestError for an unknown one."""
        self._check("")
        self._waiter.ask(partial(self._connection.forget, copy_of(snapshot).snapshot), "to forget a snapshot")

    def stats(self) -> dict[str, float]:
        """Returns the pool's counters: calls by tier and status, seconds in calls by tier, sandboxes started and
        killed, current sessions."""
        return {
            "calls": float(sum(self._calls.values())),
            **{f"calls_{tier}": float(calls) for tier, calls in sorted(self._calls.items())},
            **{f"status_{status}": float(calls) for status, calls in sorted(self._statuses.items())},
            **{f"seconds_{tier}": seconds for tier, seconds in sorted(self._seconds.items())},
            "seconds": float(sum(self._seconds.values())),
            "sandboxes_started": float(self._starts.started),
            "sandboxes_killed": float(self._starts.killed),
            "sessions": float(len(self._sessions)),
            "waiting": float(self._slots.waiting),
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

    # for sessions, on the reactor

    def claim(self, terms: PortRequest, on_ready: OnPort) -> Ticket:
        if terms.tier is Tier.SHARED:
            return self._interpreters.claim(terms, on_ready)
        return self._slots.claim(terms, on_ready)

    def born(self, parent: PortRequest, seeds: list[Seed]) -> list[Session]:
        children: list[Session] = []
        for seed in seeds:
            child = self._new(parent._replace(session=next(self._numbers), tier=seed.tier), seed)
            child.begin()
            children.append(child)
        return children

    def snapshot(self, worker: Worker, done: Callable[[SnapshotId | SandboxError], None]) -> None:
        self._connection.snapshot(worker.handle, durable=False, label="fork", done=done)

    def forget_soon(self, snapshot: SnapshotId) -> None:
        """Forgets a snapshot without waiting; the broker drops it with the connection at the latest."""
        self._connection.forget(snapshot, lambda _problem: None)

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
            raise BadRequestError(f"a caller's name may have at most {CALLER_CHARS} characters")

    def _new(self, terms: PortRequest, seed: Seed) -> LiveSession:
        session = LiveSession(terms, seed, self, self._reactor)
        self._sessions[terms.session] = session
        return session

    def _worker_ended(self, worker: Worker) -> None:
        self._interpreters.lost(worker)
        self._slots.lost(worker)

    def _broker_died(self) -> None:
        self._starts.broker_died()
