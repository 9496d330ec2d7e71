"""Queues what waits its turn: calls and forks of a session, and the requests to a guest that come of them."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass

from runtime.errors import BadRequestError
from runtime.fair_queue import QueueEntry
from runtime.guest.wire import Op
from runtime.sandbox import CallResult, Limits, Priority, Session
from runtime.sessions.outcomes import CallOutcome
from runtime.sessions.purity import Need

MAX_FORKS = 256
Done = Callable[[CallOutcome], None]


def call_seconds(asked: float | None, limits: Limits) -> float:
    """Gives the limit of one call, which can only be made shorter. Raises BadRequestError for what is no limit."""
    if asked is not None and not asked > 0:
        raise BadRequestError(f"a call cannot be limited to {asked} seconds")
    return min(limits.call_seconds, asked or limits.call_seconds)


@dataclass(slots=True, eq=False)
class SessionRequest:
    """Lives from the moment it waits its turn until it is answered."""

    op: Op
    session: int
    body: bytes
    limit: float
    """Seconds on the host's clock."""
    done: Done
    caller: str = ""
    priority: Priority = Priority.TRAINING
    since: float = 0.0
    deadline: float = 0.0
    stopped: bool = False
    """Its process was told to end, or its names to be forgotten: it was late, whatever its guest says of it now."""
    warned: bool = False
    """Its guest was told that its time is over."""
    entry: QueueEntry | None = None
    patience: float = 1.0
    """Limits of wall clock after which it ends whatever it waited for; 1: its limit is of wall clock."""


@dataclass(slots=True, eq=False)
class SessionCall:
    source: str
    seconds: float
    need: Need
    preload: tuple[str, ...]
    future: Future[CallResult]
    keep: bool = False
    """Whether the session can be forked as it was before."""
    patience: float = 1.0
    losses: int = 0


@dataclass(slots=True, eq=False)
class SessionFork:
    sessions: int
    future: Future[list[Session]]
    undo: bool = False
    """As before the last call with `keep`."""
