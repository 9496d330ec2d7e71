"""Interface between a session and its pool: a port is a session's place in one sandbox."""

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
    """Place of a session in one sandbox; given up once."""

    def __init__(self, worker: Worker, number: int, left: Callable[[], None]) -> None:
        self.worker = worker
        self.number = number
        """Number of the session inside the sandbox."""
        self.known = 0
        """Number of history calls that it has seen."""
        self.seed = b""
        """Seed of its random numbers; empty means the default of every fresh place."""
        self._left: Callable[[], None] | None = left

    def leave(self) -> None:
        """Frees the session's place in the sandbox and ends its work there, even during a call."""
        left, self._left = self._left, None
        if left is not None:
            left()


C = TypeVar("C")


class SharedBox(Generic[C]):
    """Sandbox of many sessions, or the placeholder of one requested; `waiting` are claims of places in it."""

    def __init__(self) -> None:
        self.worker: Worker | None = None
        self.starting = False
        self.waiting: list[C] = []
        self._members = 0

    def __len__(self) -> int:
        return self._members + len(self.waiting)

    def port(self, worker: Worker, session: int, freed: Callable[[], None]) -> Port:
        """Returns a new place for a session in the shared sandbox."""
        self._members += 1

        def left() -> None:
            worker.notify(Op.DROP, session)
            if self.worker is worker:
                self._members -= 1
            freed()

        return Port(worker, session, left)

    def lost(self, worker: Worker) -> bool:
        """Forgets this sandbox and its places if it is the one that ended; True if it was."""
        if self.worker is not worker:
            return False
        self.worker, self._members = None, 0
        return True


class PortRequest(NamedTuple):
    """Request of a session for a place in a sandbox."""

    session: int
    tier: Tier
    preload: tuple[str, ...] = ()
    snapshot: SnapshotId | None = None
    """Snapshot to continue from; separate sandboxes only."""
    caller: str = ""
    priority: Priority = Priority.TRAINING
    userland: bool = False
    """Adds the distribution's shell and small programs; separate sandboxes only."""
    packages: PackageSet | None = None
    """Package set; separate sandboxes only."""


OnPort = Callable[[Port | SandboxError], None]


class Ports(Protocol):
    """Source of sessions' places in sandboxes. Calls and callbacks happen on the reactor."""

    limits: Limits
    ready_modules: frozenset[str]
    """Modules beside the standard library that a compute-only process can import, because its image has them."""

    def claim(self, terms: PortRequest, on_ready: OnPort) -> Ticket:
        """Requests a place in a sandbox and calls back as soon as one is free. Raises BusyError if too many wait."""

    def born(self, parent: PortRequest, seeds: list[Seed]) -> list[Session]:
        """Creates sessions from starting points; they take their places in sandboxes before the first call."""

    def snapshot(self, worker: Worker, done: Callable[[SnapshotId | SandboxError], None]) -> None: ...

    def forget_soon(self, snapshot: SnapshotId) -> None: ...

    def measure(self, worker: Worker, done: Callable[[BoxUsage | SandboxError], None]) -> None: ...

    def count(self, result: CallResult) -> None: ...

    def gone(self, session: int) -> None: ...
