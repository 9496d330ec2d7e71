"""Protocol between `runtime.sessions` and `runtime.broker`: the requests that a session makes to a broker.

Calls and callbacks happen on the caller's reactor thread and never block. Invariants: every callback runs exactly once;
the loss of the broker ends every wait with an InfrastructureError.
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
    """Request for a sandbox restored from a snapshot, used in place of a fresh sandbox's profile."""

    snapshot: Annotated[SnapshotId, Field(pattern=r"^[0-9a-f]{64}$")]
    reseed: bool = False
    """Gives the copy random numbers that differ from its siblings'."""


@dataclass(eq=False)
class Handle:
    """Ready sandbox received from the broker; its worker waits for requests on these descriptors."""

    id: str
    profile: Profile
    requests: int
    """Non-blocking descriptor, owned and closed by the client."""
    replies: int
    """Non-blocking descriptor, owned and closed by the client."""


@dataclass(frozen=True)
class Termination:
    """Cause and final usage of a sandbox that ended."""

    cause: Cause
    usage: BoxUsage


OnReady = Callable[[Handle | SandboxError], None]


class Ticket(Protocol):
    """Launch request that waits for its sandbox."""

    def cancel(self) -> None:
        """Cancels the launch request without a callback; its sandbox goes to another caller or is ended."""


class BrokerApi(Protocol):
    def launch(self, wanted: Profile | SnapshotCopy, *, caller: str, priority: Priority, on_ready: OnReady) -> Ticket:
        """Requests a sandbox, one kept ready if possible. Raises BusyError when too many requests wait."""

    def prepare(self, snapshot: SnapshotId, copies: int, done: Callable[[SandboxError | None], None]) -> None:
        """Keeps `copies` sandboxes restored from a snapshot ready from now on; 0 stops that."""

    def snapshot(
        self, handle: Handle, *, durable: bool, label: str, done: Callable[[SnapshotId | SandboxError], None]
    ) -> None: ...

    def forget(self, snapshot: SnapshotId, done: Callable[[SandboxError | None], None]) -> None: ...

    def usage(
        self, handle: Handle, done: Callable[[BoxUsage | SandboxError], None], *, waits: bool = False
    ) -> None: ...

    def give_way(self, handle: Handle, others_first: bool, done: Callable[[SandboxError | None], None]) -> None:
        """Sets a sandbox's CPU priority: with `others_first` it runs mostly when no other sandbox wants the CPU."""

    def rest(self, handle: Handle, rests: bool, done: Callable[[SandboxError | None], None]) -> None:
        """Throttles an idle sandbox to almost no CPU while `rests` is set."""

    def end(self, handle: Handle, done: Callable[[Termination], None]) -> None:
        """Kills a sandbox and closes its descriptors; the callback runs once nothing inside runs any more.

        The cause is `asked` unless the broker or the kernel had ended the sandbox before; `died` if the broker is lost.
        """

    def close(self) -> None: ...
