"""Queued work: calls and forks of a session, and the resulting requests to a guest."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass

from runtime.errors import BadRequestError
from runtime.fair_queue import QueueEntry
from runtime.guest.wire import Op
from runtime.profile import PackageSet
from runtime.sandbox import CallResult, Limits, Priority, Session
from runtime.sessions.outcomes import CallOutcome
from runtime.sessions.purity import Need

MAX_FORKS = 256
Done = Callable[[CallOutcome], None]


def call_seconds(asked: float | None, limits: Limits, packages: PackageSet | None = None) -> float:
    """Returns one call's limit in seconds, which a request can only shorten. Raises BadRequestError if invalid."""
    if asked is not None and not asked > 0:
        raise BadRequestError(f"a call cannot be limited to {asked} seconds")
    most = max(limits.call_seconds, packages.call_seconds if packages is not None else 0.0)
    return min(most, asked or most)


@dataclass(slots=True, eq=False)
class SessionRequest:
    """Request to a sandbox's guest, from queueing to its answer."""

    op: Op
    session: int
    body: bytes
    limit: float
    """Limit in seconds on the host's clock."""
    done: Done
    caller: str = ""
    priority: Priority = Priority.TRAINING
    since: float = 0.0
    deadline: float = 0.0
    stopped: bool = False
    """True if its process was told to end, or its names to be forgotten: it is late, whatever its guest reports."""
    warned: bool = False
    """True if its guest was told that its time is over."""
    entry: QueueEntry | None = None
    patience: float = 1.0
    """Wall-clock bound in multiples of the limit, including waits; 1 makes the limit itself wall clock."""


@dataclass(slots=True, eq=False)
class SessionCall:
    source: str
    seconds: float
    need: Need
    preload: tuple[str, ...]
    future: Future[CallResult]
    keep: bool = False
    """True if the session can be forked from its state before this call."""
    patience: float = 1.0
    losses: int = 0


@dataclass(slots=True, eq=False)
class SessionFork:
    sessions: int
    future: Future[list[Session]]
    undo: bool = False
    """Forks the state before the last `keep` call."""
