"""One thing that is asked of a guest."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from runtime.guest.wire import Op
from runtime.sandbox import Priority
from runtime.sessions.endings import Ending
from runtime.turns import Entry

Done = Callable[[Ending], None]


@dataclass(slots=True, eq=False)
class Request:
    """From the moment it waits its turn until it is answered."""

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
    """Answered, or its process told to end; what is left is to see that the guest obeys."""
    entry: Entry | None = None
