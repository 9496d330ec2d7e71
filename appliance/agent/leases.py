"""Is what one rollout has of a world: the world, or the wait for it."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock

from curriculum.worlds.world import World
from runtime.errors import InfrastructureError

Use = Callable[[World | BaseException], None]


class WorldLease:
    """Belongs to one rollout; used from the agent's loop only, but for `reserve`. A world that comes after `close`, or
    that came and was not given yet, is closed at once."""

    def __init__(self, calls: int, *, shared: bool = False, digest: str = "") -> None:
        self.calls = calls
        """How many its rollout may make at most."""
        self.world: World | None = None
        self.failed: BaseException | None = None
        """Why there is no world, or no longer one that can be believed."""
        self.shared = shared
        """Other rollouts have views of the same world, whose digest has to stay as it is."""
        self.digest = digest
        self.state = ""
        """From which its view of a shared world goes on; empty for the world as its task begins."""
        self.closed = False
        self._uses: list[Use] = []
        self._lock = Lock()
        self._reserved: World | None = None

    def use(self, then: Use) -> None:
        """Calls back with the world, or with why there is none: now, or when it is known."""
        known = self.failed or self.world
        if known is not None:
            then(known)
        else:
            self._uses.append(then)

    def reserve(self, world: World) -> None:
        """Takes note of the world that will be given, from any thread, as soon as there is one."""
        with self._lock:
            self._reserved = world
            closed = self.closed
        if closed:
            world.close()

    def give(self, given: World | BaseException) -> None:
        """Ends the wait."""
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
