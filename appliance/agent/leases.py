"""Lease of a world by one rollout: the world, or the wait for it."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock

from curriculum.worlds.world import World
from runtime.errors import InfrastructureError

Use = Callable[[World | BaseException], None]


class WorldLease:
    """One rollout's lease of a world, used only from the agent's loop, except `reserve`. A world that arrives after
    `close`, or was reserved but not given, is closed immediately."""

    def __init__(self, calls: int, *, shared: bool = False, digest: str = "") -> None:
        self.calls = calls
        """Maximum calls of its rollout."""
        self.world: World | None = None
        self.failed: BaseException | None = None
        """Reason that the world is missing or no longer trusted."""
        self.shared = shared
        """True if other rollouts have views of the same world, whose digest must not change."""
        self.digest = digest
        self.state = ""
        """State from which its view of a shared world continues; empty for the task's initial world."""
        self.closed = False
        self._uses: list[Use] = []
        self._lock = Lock()
        self._reserved: World | None = None

    def use(self, then: Use) -> None:
        """Calls back with the leased world or its failure, now or once known."""
        known = self.failed or self.world
        if known is not None:
            then(known)
        else:
            self._uses.append(then)

    def reserve(self, world: World) -> None:
        """Records the world to be given, from any thread, as soon as it exists. Closes it if the lease was closed."""
        with self._lock:
            self._reserved = world
            closed = self.closed
        if closed:
            world.close()

    def give(self, given: World | BaseException) -> None:
        """Provides the leased world, or its failure, and calls everybody who waits for it."""
        if isinstance(given, BaseException):
            self.failed = given
        elif self.closed:
            if not self.shared:
                given.close()
            return
        else:
            self.world = given
        uses, self._uses = self._uses, []
        for then in uses:
            then(given)

    def close(self) -> None:
        with self._lock:
            self.closed = True
        self.failed = self.failed or InfrastructureError("the rollout has ended")
        for world in (self._reserved, self.world):
            if world is not None and not self.shared:
                world.close()
