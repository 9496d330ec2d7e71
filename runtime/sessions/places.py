"""What a session needs from whoever gives it a place to run: the seam between sessions and their pool."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from runtime.errors import SandboxError
from runtime.sandbox import CallResult, Limits, Tier
from runtime.sessions.worker import Worker


class Seat(Protocol):
    """A place for one session in a sandbox."""

    @property
    def worker(self) -> Worker: ...

    def leave(self) -> None:
        """Frees the place and kills what the session has there."""
        ...


class Places(Protocol):
    """Who gives out seats. Everything here is called, and calls back, on the reactor's thread."""

    limits: Limits

    def shared(self, session: int, given: Callable[[Worker | SandboxError], None]) -> None: ...

    def seat(self, tier: Tier, session: int, given: Callable[[Seat | SandboxError], None]) -> None: ...

    def in_turn(self, worker: Worker, job: Callable[[Callable[[], None]], None]) -> None:
        """Runs the job when the worker's sandbox has a free core; the job calls back when it is done."""
        ...

    def count(self, result: CallResult) -> None: ...

    def gone(self, session: int) -> None: ...
