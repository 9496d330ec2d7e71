"""How whole sandboxes, and answers of the broker, come to callers who wait for them.

What always holds: every wait is bounded, and a sandbox that arrives after it is ended. Called from any thread but the
reactor's.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from runtime.errors import BusyError, InfrastructureError, SandboxError
from runtime.launcher import Launcher, Ticket
from runtime.reactor import Reactor
from runtime.sandbox import Limits, Priority, SnapshotId
from runtime.sessions.endings import Lost
from runtime.sessions.starts import Started, Starts
from runtime.sessions.worker import Worker

REPLY_BYTES = (8 << 20) + 1
"""The most that one reply may hold beside its report."""
QUEUE_SECONDS = 300.0
"""How long a sandbox may be waited for."""
ANSWER_SECONDS = 120.0
"""How long the broker may take for anything else."""
T = TypeVar("T")
Answered = Callable[[T | SandboxError], None]


class Yard:
    def __init__(self, reactor: Reactor, launcher: Launcher, starts: Starts) -> None:
        self.reactor, self.launcher, self._starts = reactor, launcher, starts

    def fresh(self, limits: Limits, caller: str, priority: Priority) -> Worker:
        """Raises InfrastructureError when it does not start, BusyError when too many wait."""

        def begin(given: Started) -> Ticket:
            return self._starts.launch(
                "sandbox",
                limits=limits,
                caller=caller,
                priority=priority,
                reply_bytes=REPLY_BYTES,
                given=given,
            )

        return self._workers([begin])[0]

    def restored(self, snapshot: SnapshotId, n: int, *, reseed: bool, caller: str, priority: Priority) -> list[Worker]:
        """All of them or none. Raises BadRequestError when there is no such snapshot, and as `fresh`."""

        def begin(given: Started) -> Ticket:
            return self._starts.restore(
                snapshot, reseed=reseed, caller=caller, priority=priority, reply_bytes=REPLY_BYTES, given=given
            )

        return self._workers([begin] * n)

    def ask(self, begin: Callable[[Answered[T]], None], what: str) -> T:
        """Waits for an answer of the broker."""
        answer: Future[T | SandboxError] = Future()
        self.reactor.here(lambda: begin(answer.set_result))
        try:
            found = answer.result(timeout=ANSWER_SECONDS)
        except TimeoutError:
            raise InfrastructureError(f"the broker has not answered: {what}", hint="Run `assay doctor`.") from None
        if isinstance(found, SandboxError):
            raise found
        return found

    def _workers(self, begins: list[Callable[[Started], Ticket]]) -> list[Worker]:
        answers: list[Future[Worker | SandboxError]] = [Future() for _ in begins]
        tickets: list[Ticket] = []

        def start() -> None:
            for begin, answer in zip(begins, answers, strict=True):
                tickets.append(begin(answer.set_result))

        def give_up() -> None:
            for ticket, answer in zip(tickets, answers, strict=True):
                if not answer.done():
                    ticket.cancel()
                else:
                    arrived = answer.result()
                    if isinstance(arrived, Worker):
                        arrived.lose(Lost.DIED)

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
            raise BusyError(f"no sandbox was free for {QUEUE_SECONDS:g} s", hint="Close some, or ask later.") from None
        except BaseException:
            self.reactor.call(give_up)
            raise
        return workers
