"""What a session needs from whoever gives it a place to run: the seam between sessions and their pool."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

from runtime.backends.backend import BoxUsage
from runtime.errors import SandboxError
from runtime.launcher import Kept
from runtime.sandbox import CallResult, Limits, Priority, Session, SnapshotId, Tier
from runtime.sessions.branches import Seed
from runtime.sessions.worker import Worker


class Place:
    """Where a session is in one sandbox; who leaves it does so once."""

    def __init__(self, worker: Worker, number: int, left: Callable[[], None]) -> None:
        self.worker = worker
        self.number = number
        """What the session is called inside."""
        self.known = 0
        """How much of the session's history it has seen."""
        self._left: Callable[[], None] | None = left

    def leave(self) -> None:
        """Frees the place and ends what the session has there, also in the middle of a call."""
        left, self._left = self._left, None
        if left is not None:
            left()


class Wish(NamedTuple):
    """Which place a session asks for."""

    session: int
    tier: Tier
    preload: tuple[str, ...] = ()
    snapshot: SnapshotId | None = None
    """Only for a sandbox of its own: it goes on from there."""
    caller: str = ""
    priority: Priority = Priority.TRAINING


Given = Callable[[Place | SandboxError], None]


class Claim(Protocol):
    def cancel(self) -> None:
        """The place is not wanted any more; no call back follows, and what was begun for it is ended or reused."""
        ...


class Places(Protocol):
    """Who gives out places. Everything here is called, and calls back, on the reactor."""

    limits: Limits
    ready_modules: frozenset[str]
    """What can be imported in a process beside the standard library, because its image has it."""

    def claim(self, wish: Wish, given: Given) -> Claim:
        """A place as soon as one is free. BusyError when too many wait already."""
        ...

    def born(self, parent: Wish, seeds: list[Seed]) -> list[Session]:
        """New sessions, which take their places before anybody calls them."""
        ...

    def snapshot(self, worker: Worker, done: Callable[[Kept | SandboxError], None]) -> None: ...

    def forget_soon(self, snapshot: SnapshotId) -> None: ...

    def measure(self, worker: Worker, done: Callable[[BoxUsage | SandboxError], None]) -> None: ...

    def count(self, result: CallResult) -> None: ...

    def gone(self, session: int) -> None: ...
