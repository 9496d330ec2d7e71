"""What sessions need from the broker: the seam between `runtime.sessions` and `runtime.broker`.

All of it is called, and calls back, on the reactor's thread of the one who asks; nothing blocks. What always holds:
every call back comes exactly once; a broker that is gone ends every wait with an InfrastructureError.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from runtime.backends.backend import BoxUsage, Cause
from runtime.errors import SandboxError
from runtime.profile import Profile
from runtime.sandbox import Priority, SnapshotId


@dataclass(eq=False)
class Handle:
    """A ready sandbox that the broker has given us: its worker waits for requests on these descriptors."""

    id: str
    profile: Profile
    requests: int
    """Non-blocking; ours to close."""
    replies: int
    """Likewise."""


@dataclass(frozen=True)
class Fate:
    """How a sandbox ended."""

    cause: Cause
    usage: BoxUsage


@dataclass(frozen=True)
class Kept:
    """A snapshot in the store."""

    id: SnapshotId
    bytes: int
    seconds: float


Given = Callable[[Handle | SandboxError], None]


class Ticket(Protocol):
    """A place in the queue."""

    def cancel(self) -> None:
        """No longer wanted; what was started for it goes to somebody else or is ended. No call back follows."""
        ...


class Launcher(Protocol):
    def launch(self, profile: Profile, *, caller: str, priority: Priority, given: Given) -> Ticket:
        """A fresh sandbox, from the warm pool where there is one. BusyError when too many wait."""
        ...

    def restore(self, snapshot: SnapshotId, *, reseed: bool, caller: str, priority: Priority, given: Given) -> Ticket:
        """A sandbox that goes on from a snapshot; with `reseed`, with other random numbers than its siblings."""
        ...

    def prepare(self, snapshot: SnapshotId, copies: int, done: Callable[[SandboxError | None], None]) -> None:
        """Keeps that many restored copies ready from now on; 0 ends it."""
        ...

    def snapshot(
        self, handle: Handle, *, durable: bool, label: str, done: Callable[[Kept | SandboxError], None]
    ) -> None: ...

    def forget(self, snapshot: SnapshotId, done: Callable[[SandboxError | None], None]) -> None: ...

    def usage(
        self, handle: Handle, done: Callable[[BoxUsage | SandboxError], None], *, waits: bool = False
    ) -> None: ...

    def give_way(self, handle: Handle, others_first: bool, done: Callable[[SandboxError | None], None]) -> None:
        """Whether it computes mostly when no other sandbox does."""
        ...

    def end(self, handle: Handle, done: Callable[[Fate], None]) -> None:
        """Kills it now and closes its descriptors; calls back once nothing inside runs any more, with why it ended:
        `asked` unless the broker or the kernel had ended it before. A broker that is gone answers `died`."""
        ...

    def close(self) -> None: ...
