"""Blocking waits for whole sandboxes and broker answers, for callers on other threads.

Invariants: every wait has a timeout, and a sandbox that arrives later is ended. Called from any thread but the
reactor's.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import TypeVar

from runtime.broker_api import BrokerApi, SnapshotCopy, Ticket
from runtime.errors import BusyError, InfrastructureError, SandboxError
from runtime.guest.wire import LIST_BYTES
from runtime.profile import Profile
from runtime.reactor import Reactor
from runtime.sandbox import Priority
from runtime.sessions.files import PIECE_BYTES
from runtime.sessions.outcomes import LossCause
from runtime.sessions.starts import SessionStarts
from runtime.sessions.worker import Worker

REPLY_BYTES = max(PIECE_BYTES, LIST_BYTES)
"""Largest reply without its report, in bytes, except program output."""
QUEUE_SECONDS = 300.0
"""Timeout for a sandbox, in seconds."""
ANSWER_SECONDS = 120.0
"""Timeout for any other broker answer, in seconds."""
T = TypeVar("T")
Answered = Callable[[T | SandboxError], None]


def awaited(reactor: Reactor, begin: Callable[[Callable[[T], None]], None], seconds: float, silence: str) -> T:
    """Starts an operation on the reactor and waits for its callback. Raises InfrastructureError with the text `silence`
    on a timeout."""
    answer: Future[T] = Future()
    reactor.here(lambda: begin(answer.set_result))
    try:
        return answer.result(timeout=seconds)
    except TimeoutError:
        raise InfrastructureError(silence, hint="Run `assay doctor`.") from None


class Waiter:
    def __init__(self, reactor: Reactor, launcher: BrokerApi, starts: SessionStarts) -> None:
        self.reactor, self.launcher, self._starts = reactor, launcher, starts

    def ask(self, begin: Callable[[Answered[T]], None], what: str) -> T:
        """Starts a request to the broker, waits for the answer, and returns it or raises its error."""
        found = awaited(self.reactor, begin, ANSWER_SECONDS, f"the broker has not answered: {what}")
        if isinstance(found, SandboxError):
            raise found
        return found

    def workers(self, wanted: Profile | SnapshotCopy, n: int = 1, *, caller: str, priority: Priority) -> list[Worker]:
        """Starts `n` sandboxes and waits until all are ready; all or none. Raises InfrastructureError if one does not
        start, BusyError if too many wait, BadRequestError for an unknown snapshot."""
        launch = partial(self._starts.launch, wanted, caller=caller, priority=priority, reply_bytes=REPLY_BYTES)
        answers: list[Future[Worker | SandboxError]] = [Future() for _ in range(n)]
        tickets: list[Ticket] = []

        def start() -> None:
            tickets.extend(launch(on_ready=answer.set_result) for answer in answers)

        def give_up() -> None:
            for ticket, answer in zip(tickets, answers, strict=True):
                if not answer.done():
                    ticket.cancel()
                else:
                    arrived = answer.result()
                    if isinstance(arrived, Worker):
                        arrived.lose(LossCause.DIED)

        self.reactor.here(start)
        workers = []
        try:
            for answer in answers:
                found = answer.result(timeout=QUEUE_SECONDS)
                if isinstance(found, SandboxError):
                    raise found
                workers.append(found)
        except TimeoutError:
            self.reactor.call(give_up)
            raise BusyError(
                f"no sandbox was free for {QUEUE_SECONDS:g} s", hint="Close some, or try again later."
            ) from None
        except BaseException:
            self.reactor.call(give_up)
            raise
        return workers
