"""Defines what sessions ask of the broker, as a protocol between `runtime.sessions` and `runtime.broker`.

All of it is called, and calls back, on the reactor's thread of the one who asks; nothing blocks. What always holds:
every call back comes exactly once; a broker that is gone ends every wait with an InfrastructureError.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Protocol

from pydantic import Field

from runtime.errors import SandboxError
from runtime.model import FrozenModel
from runtime.profile import BoxUsage, Cause, Profile
from runtime.sandbox import Priority, SnapshotId


class SnapshotCopy(FrozenModel):
    """Asks for a sandbox that goes on from a snapshot, in the place of the profile of a fresh one."""

    snapshot: Annotated[SnapshotId, Field(pattern=r"^[0-9a-f]{64}$")]
    reseed: bool = False
    """With other random numbers than its siblings."""


@dataclass(eq=False)
class Handle:
    """Is a ready sandbox that the broker has given us: its worker waits for requests on these descriptors."""

    id: str
    profile: Profile
    requests: int
    """Non-blocking; ours to close."""
    replies: int
    """Likewise."""


@dataclass(frozen=True)
class Termination:
    """Says how a sandbox ended."""

    cause: Cause
    usage: BoxUsage


OnReady = Callable[[Handle | SandboxError], None]


class Ticket(Protocol):
    """Stands for a request that waits."""

    def cancel(self) -> None:
        """Gives it up; what was started for it goes to somebody else or is ended. No call back follows."""


class BrokerApi(Protocol):
    def launch(self, wanted: Profile | SnapshotCopy, *, caller: str, priority: Priority, on_ready: OnReady) -> Ticket:
        """Asks for a sandbox, from the warm pool where there is one. BusyError when too many wait."""

    def prepare(self, snapshot: SnapshotId, copies: int, done: Callable[[SandboxError | None], None]) -> None:
        """Keeps that many restored copies ready from now on; 0 ends it."""

    def snapshot(
        self, handle: Handle, *, durable: bool, label: str, done: Callable[[SnapshotId | SandboxError], None]
    ) -> None: ...

    def forget(self, snapshot: SnapshotId, done: Callable[[SandboxError | None], None]) -> None: ...

    def usage(
        self, handle: Handle, done: Callable[[BoxUsage | SandboxError], None], *, waits: bool = False
    ) -> None: ...

    def give_way(self, handle: Handle, others_first: bool, done: Callable[[SandboxError | None], None]) -> None:
        """Says whether it computes mostly when no other sandbox does."""

    def rest(self, handle: Handle, rests: bool, done: Callable[[SandboxError | None], None]) -> None:
        """Says whether nobody speaks to it for now: then it gets next to no processor, until it is told otherwise."""

    def end(self, handle: Handle, done: Callable[[Termination], None]) -> None:
        """Kills it now and closes its descriptors; calls back once nothing inside runs any more, with why it ended:
        `asked` unless the broker or the kernel had ended it before. A broker that is gone answers `died`."""

    def close(self) -> None: ...
