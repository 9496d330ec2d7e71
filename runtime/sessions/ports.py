"""Defines what a session asks of its pool: a port, which is where it runs in one sandbox."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, NamedTuple, Protocol, TypeVar

from runtime.broker_api import Ticket
from runtime.errors import SandboxError
from runtime.guest.wire import Op
from runtime.profile import BoxUsage, PackageSet
from runtime.sandbox import CallResult, Limits, Priority, Session, SnapshotId, Tier
from runtime.sessions.branches import Seed
from runtime.sessions.worker import Worker


class Port:
    """Is where a session runs in one sandbox; who leaves it does so once."""

    def __init__(self, worker: Worker, number: int, left: Callable[[], None]) -> None:
        self.worker = worker
        self.number = number
        """What the session is called inside."""
        self.known = 0
        """How much of the session's history it has seen."""
        self.seed = b""
        """What its random numbers come from; empty: as in every fresh place."""
        self._left: Callable[[], None] | None = left

    def leave(self) -> None:
        """Frees it and ends what the session has there, also in the middle of a call."""
        left, self._left = self._left, None
        if left is not None:
            left()


C = TypeVar("C")


class SharedBox(Generic[C]):
    """Is a sandbox of many sessions, or stands for one that was asked for; `waiting` are claims of places in it."""

    def __init__(self) -> None:
        self.worker: Worker | None = None
        self.starting = False
        self.waiting: list[C] = []
        self._members = 0

    def __len__(self) -> int:
        return self._members + len(self.waiting)

    def port(self, worker: Worker, session: int, freed: Callable[[], None]) -> Port:
        """Gives a place in it."""
        self._members += 1

        def left() -> None:
            worker.notify(Op.DROP, session)
            if self.worker is worker:
                self._members -= 1
            freed()

        return Port(worker, session, left)

    def lost(self, worker: Worker) -> bool:
        """A sandbox has ended; whether it was this one."""
        if self.worker is not worker:
            return False
        self.worker, self._members = None, 0
        return True


class PortRequest(NamedTuple):
    """Says what port a session asks for."""

    session: int
    tier: Tier
    preload: tuple[str, ...] = ()
    snapshot: SnapshotId | None = None
    """Only for a sandbox of its own: it goes on from there."""
    caller: str = ""
    priority: Priority = Priority.TRAINING
    userland: bool = False
    """Likewise, with the distribution's shell and small programs."""
    packages: PackageSet | None = None
    """Only for a sandbox of its own."""


OnPort = Callable[[Port | SandboxError], None]


class Ports(Protocol):
    """Gives out ports. Everything here is called, and calls back, on the reactor."""

    limits: Limits
    ready_modules: frozenset[str]
    """What can be imported in a process beside the standard library, because its image has it."""

    def claim(self, terms: PortRequest, on_ready: OnPort) -> Ticket:
        """Asks for a port as soon as one is free. BusyError when too many wait already."""

    def born(self, parent: PortRequest, seeds: list[Seed]) -> list[Session]:
        """Makes new sessions, which take their ports before anybody calls them."""

    def snapshot(self, worker: Worker, done: Callable[[SnapshotId | SandboxError], None]) -> None: ...

    def forget_soon(self, snapshot: SnapshotId) -> None: ...

    def measure(self, worker: Worker, done: Callable[[BoxUsage | SandboxError], None]) -> None: ...

    def count(self, result: CallResult) -> None: ...

    def gone(self, session: int) -> None: ...
