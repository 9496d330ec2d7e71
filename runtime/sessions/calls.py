"""What waits in a session's queue: calls, and forks, which wait for the calls before them."""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import dataclass

from runtime.sandbox import CallResult, Session
from runtime.sessions.purity import Need


@dataclass(slots=True, eq=False)
class Call:
    source: str
    seconds: float
    need: Need
    preload: tuple[str, ...]
    future: Future[CallResult]
    keep: bool = False
    """Whether the session can be forked as it was before."""
    losses: int = 0


@dataclass(slots=True, eq=False)
class Fork:
    sessions: int
    future: Future[list[Session]]
    undo: bool = False
    """As before the last call with `keep`."""
