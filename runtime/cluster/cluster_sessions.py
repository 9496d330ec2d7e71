"""Pool of sessions over many hosts: the driver's side.

Invariants: a session opens on the host with the most room and stays there; a host that was silent for `lost_seconds`,
or whose part of the cluster ended, is lost, and its waiting calls immediately end with HostLostError; sessions
elsewhere are unaffected; the host is used again, empty, when it returns. Not promised: that a call on a lost host did
not run, or knowledge of other drivers' sessions on the hosts.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

from runtime.backends.packages import packages_digest
from runtime.cluster import messages as m
from runtime.cluster.link import GatewayLink, Link
from runtime.cluster.messages import Frame, FrameKind
from runtime.cluster.placement import Health, HostPlacement
from runtime.cluster.remote import RemoteSandbox, RemoteSession, T
from runtime.cluster.roster import Answered, Event, HostLost, Roster
from runtime.cluster.settings import own_digest
from runtime.errors import BadRequestError, HostLostError, InfrastructureError, RefusedError, SandboxError
from runtime.profile import BackendName, PackageSet
from runtime.reactor import Reactor
from runtime.sandbox import NO_FILES, ClosesOnExit, Limits, Priority, Sandbox, Session, SnapshotId, Tier
from runtime.sessions.branches import new_files
from runtime.settings import ClusterSettings

CHECK_SECONDS = 0.5
SAID_CHARS = 120
"""Longest reason shown to people, in characters; the log has all of it."""
Later = list[Callable[[], None]]
"""Actions to run after releasing the lock, because they may call back into this module."""


class PendingCall(NamedTuple):
    """Call to a host that has not been answered."""

    node: str
    answer: Callable[[m.Did], None]
    fail: Callable[[SandboxError], None]


class ClusterSessions(ClosesOnExit):
    """Pool of sessions over a cluster, a `runtime.sandbox.SessionPool`. Methods may be called from any thread."""

    def __init__(
        self,
        settings: ClusterSettings,
        limits: Limits,
        *,
        backend: BackendName = BackendName.GVISOR,
        packages: Path | None = None,
        link: Callable[[ClusterSettings, Reactor], Link] = GatewayLink,
        said: Callable[[str], None] = lambda text: None,
    ) -> None:
        """Joins the cluster, and returns once the present hosts have reported their capacity.

        Hosts with another backend or program, or with guest packages that differ from this machine's (in the folder
        `packages`, or the installer's), are not used. `said` gets messages about hosts with sessions and lost hosts.
        Raises RefusedError if the cluster rejects us, InfrastructureError if no host answers in time.
        """
        self.limits = limits
        self._said = said
        self._settings = settings
        self._reactor = Reactor()
        self._lock = threading.Condition()
        self._numbers = itertools.count(1)
        self._placement = HostPlacement()
        hello = m.DriverHello(backend=backend, limits=limits, program=own_digest(), packages=packages_digest(packages))
        self._roster = Roster(settings, hello, self._placement)
        self._waiting: dict[int, PendingCall] = {}
        self._snapshots: dict[SnapshotId, str] = {}
        """Host of each snapshot."""
        self._closed = False
        try:
            self._link = link(settings, self._reactor)
        except SandboxError:
            self._reactor.stop()
            raise
        self._reactor.call(self._check)
        self._link.start(self._receive, self._unlinked)
        try:
            self._wait_for_hosts()
        except BaseException:
            self.close()
            raise
        said(f"sandboxes are on {', '.join(sorted(self._roster.nodes))}")

    # for callers, from any thread

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
        """Opens a session on some host without waiting for that host; the session's first call reports errors."""
        begun_with = {file.name: file.data for file in new_files(files, self.limits.work_mib)}
        if begun_with or userland or packages is not None:
            tier = Tier.SANDBOX
        with self._lock:
            self._check_open()
            number = self.number()
            host = self._placement.open(number, tier)
            opened = m.OpenSession(
                session=number,
                tier=tier,
                caller=caller,
                priority=priority,
                files=begun_with,
                userland=userland,
                packages=packages,
            )
            self._send(host, opened)
            return RemoteSession(number, host, tier, self)

    def sandbox(
        self,
        limits: Limits | None = None,
        *,
        userland: bool = False,
        packages: PackageSet | None = None,
        snapshot: SnapshotId | None = None,
        caller: str = "",
        priority: Priority = Priority.TRAINING,
    ) -> Sandbox:
        """Opens a sandbox on a host of the cluster; from a snapshot, on the snapshot's host. Raises BadRequestError for
        a snapshot unknown here."""
        with self._lock:
            self._check_open()
            number = self.number()
            if snapshot is None:
                self._placement.open(number, Tier.SANDBOX)
            else:
                self._placement.settle(number, self._keeper(snapshot), Tier.SANDBOX)
        command = m.OpenBox(
            session=number,
            call=self.number(),
            limits=limits,
            userland=userland,
            packages=packages,
            snapshot=snapshot,
            caller=caller,
            priority=priority,
        )
        try:
            return self.ask(command, lambda did: RemoteSandbox.opened(did, self)).result()
        except BaseException:
            self.leave(number)
            raise

    def forget(self, snapshot: SnapshotId) -> None:
        """Deletes a snapshot on its host. Raises BadRequestError for a snapshot unknown here."""
        with self._lock:
            self._check_open()
            home = self._keeper(snapshot)
            command = m.Do(session=0, call=self.number(), what="forget", text=snapshot)
            done = self._ask(home, command, lambda _: None)
        done.result()
        with self._lock:
            self._snapshots.pop(snapshot, None)

    def stats(self) -> dict[str, float]:
        """Returns the counters of all hosts, summed, and the number of `hosts`."""
        with self._lock:
            totals = {key: float(value) for key, value in sorted(self._roster.stats().items())}
            return {**totals, "hosts": float(len(self._roster.nodes))}

    def hosts(self) -> dict[str, Health]:
        """Returns the health of the cluster's present and past hosts, by name."""
        with self._lock:
            return {name: host.health for name, host in self._placement.hosts.items()}

    def close(self) -> None:
        """Ends every session of this pool, on every host."""
        with self._changing() as later:
            if self._closed:
                return
            self._closed = True
            error = BadRequestError("the pool of sessions was closed")
            later += [partial(waiting.fail, error) for waiting in self._waiting.values()]
            self._waiting.clear()
        self._link.close()
        self._reactor.stop()

    # for remote objects

    def number(self) -> int:
        return next(self._numbers)

    def ask(self, command: m.OpenBox | m.Do, take: Callable[[m.Did], T]) -> Future[T]:
        with self._lock:
            self._check_open()
            home = self._placement.home(command.session)
            if home is None:
                future: Future[T] = Future()
                future.set_exception(_lost("the host of this session", "it was lost before"))
                return future
            return self._ask(home, command, take)

    def adopt(self, number: int, like: int, tier: Tier) -> None:
        with self._lock:
            home = self._placement.home(like)
            if home is not None:  # else it was lost with its parent's host
                self._placement.settle(number, home, tier)

    def keep(self, snapshot: SnapshotId, session: int) -> None:
        with self._lock:
            home = self._placement.home(session)
            if home is not None:
                self._snapshots[snapshot] = home

    def leave(self, session: int) -> None:
        with self._lock:
            home = self._placement.home(session)
            if home is not None and not self._closed:
                self._placement.close(session)
                self._send(home, m.Close(session=session))

    # inside, with the lock

    def _check_open(self) -> None:
        if self._closed:
            raise BadRequestError("the pool of sessions is closed")

    def _keeper(self, snapshot: SnapshotId) -> str:
        home = self._snapshots.get(snapshot)
        if home is None:
            raise BadRequestError(f"no known host of the cluster has snapshot {snapshot[:12]}")
        return home

    def _ask(self, host: str, command: m.OpenBox | m.Do, take: Callable[[m.Did], T]) -> Future[T]:
        future: Future[T] = Future()
        future.set_running_or_notify_cancel()  # not cancellable from here on

        def answer(report: m.Did) -> None:
            try:
                future.set_result(take(report))
            except SandboxError as error:
                future.set_exception(error)

        self._waiting[command.call] = PendingCall(self._roster.nodes[host], answer, future.set_exception)
        self._send(host, command)
        return future

    def _send(self, host: str, command: m.Command) -> None:
        self._link.send(Frame(FrameKind.PACKET, self._roster.nodes[host], m.packet([command])))

    @contextmanager
    def _changing(self) -> Iterator[Later]:
        """Locks the pool for a block, then notifies threads that wait for hosts and runs deferred actions."""
        later: Later = []
        with self._lock:
            yield later
            self._lock.notify_all()
        for action in later:
            action()

    def _wait_for_hosts(self) -> None:
        """Waits until every initially listed host has reported its capacity or failed, at most `connect_seconds`.
        Raises the last reported problem, else InfrastructureError, if no host has joined."""
        deadline = time.monotonic() + self._settings.connect_seconds
        with self._lock:
            while not (self._roster.settled or self._roster.barred) and (left := deadline - time.monotonic()) > 0:
                self._lock.wait(left)
            if not self._roster.nodes:
                raise self._roster.problem or InfrastructureError(
                    f"no host of the cluster at {self._settings.address} answers",
                    hint="start it with `assay cluster start`, or add this machine with `assay cluster join`",
                )

    # on the reactor's thread

    def _check(self) -> None:
        """Gives up hosts that have been silent for too long; runs itself twice a second."""
        with self._changing() as later:
            if self._closed:
                return
            self._follow(self._roster.silent(time.monotonic()), later)
        self._reactor.after(CHECK_SECONDS, self._check)

    def _receive(self, frame: Frame) -> None:
        with self._changing() as later:
            if not self._closed:
                self._follow(self._roster.received(frame, time.monotonic()), later)

    def _unlinked(self, reason: SandboxError | None) -> None:
        with self._changing() as later:
            if not self._closed:
                self._follow(self._roster.unlinked(reason), later)

    def _follow(self, events: Iterable[Event], later: Later) -> None:
        for event in events:
            match event:
                case Frame():
                    self._link.send(event)
                case HostLost():
                    self._lose(event, later)
                case Answered():
                    self._answered(event, later)

    def _lose(self, event: HostLost, later: Later) -> None:
        self._snapshots = {snapshot: home for snapshot, home in self._snapshots.items() if home != event.name}
        error = _lost(event.what, event.reason)
        became = "and its sandboxes are lost" if event.name else "is not used"
        if not event.again:
            later.append(partial(self._said, f"{event.what} {became}: {event.reason[:SAID_CHARS]}"))
        mine = [call for call, waiting in self._waiting.items() if waiting.node == event.node]
        later += [partial(self._waiting.pop(call).fail, error) for call in mine]

    def _answered(self, event: Answered, later: Later) -> None:
        report = event.report
        if isinstance(report, m.Did) and report.result is not None:
            self._placement.moved(report.session, report.result.tier)
        waiting = self._waiting.get(report.call)
        if waiting is None or waiting.node != event.node:  # a failed opening: the session's calls report it
            return
        del self._waiting[report.call]
        if isinstance(report, m.CallFailed):
            error = report.failure.exception()
            if isinstance(error, RefusedError):  # ends all work, so it must name the host to fix
                error = RefusedError(f"host {event.name}: {error}", hint=error.hint)
            later.append(partial(waiting.fail, error))
        else:
            later.append(partial(waiting.answer, report))


def _lost(what: str, why: str) -> HostLostError:
    return HostLostError(f"{what} is lost: {why}", hint="open another session on the remaining hosts; this one is gone")
