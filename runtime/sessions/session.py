"""One session: its calls in order, and the answers to their callers.

A session starts in a shared interpreter and moves to more isolation when its code requires it (see `placement`); a move
never changes its past results. Invariants: calls of one session run in order, each is answered once, and a killed call
leaves the session as before that call, or, in a separate sandbox, empty; its error says which. Protocol methods may be
called from any thread, others from the reactor only.
"""

from __future__ import annotations

from collections import deque
from concurrent.futures import Future
from functools import partial

from runtime.errors import BadRequestError, SandboxError
from runtime.reactor import Reactor
from runtime.sandbox import CallResult, ClosesOnExit, Session, Tier, Usage
from runtime.sessions.branches import Seed
from runtime.sessions.outcomes import not_run
from runtime.sessions.placement import SessionPlacement
from runtime.sessions.ports import PortRequest, Ports
from runtime.sessions.purity import Need, classify
from runtime.sessions.session_queue import MAX_FORKS, SessionCall, SessionFork, call_seconds
from runtime.sessions.starts import preload_for
from runtime.sessions.usage_meter import UsageMeter
from runtime.sessions.waiter import awaited

USAGE_SECONDS = 10.0


class LiveSession(ClosesOnExit):
    """Open session of the pool on this host: the only implementation of `runtime.sandbox.Session`."""

    def __init__(self, terms: PortRequest, seed: Seed, ports: Ports, reactor: Reactor) -> None:
        self.id = f"session-{terms.session}"
        self._terms, self._ports, self._reactor = terms, ports, reactor
        self._queue: deque[SessionCall | SessionFork] = deque()
        self._active: SessionCall | SessionFork | None = None
        self._account = UsageMeter()
        self._placement = SessionPlacement(
            seed, terms, ports, self._account, answered=self._answered, failed=self._failed
        )
        self._closed = self._advancing = False

    @property
    def tier(self) -> Tier:
        return self._placement.tier

    @property
    def usage(self) -> Usage:
        """Current resource usage of the session. Raises InfrastructureError if the broker does not report in time."""
        report = partial(self._account.report, self._ports.measure)
        used: Usage = awaited(self._reactor, report, USAGE_SECONDS, f"no usage report for {self.id}")
        return used

    def start(
        self, code: str, *, seconds: float | None = None, keep: bool = False, patience: float = 1.0
    ) -> Future[CallResult]:
        limit = call_seconds(seconds, self._ports.limits, self._terms.packages)
        if self._closed:
            raise BadRequestError(f"{self.id} is closed")
        need = classify(code, self._ports.ready_modules)
        plain = need is Need.PURE or need is Need.BROKEN or not self._ports.ready_modules
        preload = () if plain else preload_for(code)
        call = SessionCall(code, limit, need, preload, Future(), keep, patience)
        self._reactor.here(partial(self._enqueue, call))
        return call.future

    def run(self, code: str, *, seconds: float | None = None) -> CallResult:
        return self.start(code, seconds=seconds).result()

    def fork(self, n: int, *, undo: bool = False) -> list[Session]:
        return self.start_fork(n, undo=undo).result()

    def start_fork(self, n: int, *, undo: bool = False) -> Future[list[Session]]:
        if not 1 <= n <= MAX_FORKS:
            raise BadRequestError(f"a session can be forked into 1 to {MAX_FORKS} others, not {n}")
        if self._closed:
            raise BadRequestError(f"{self.id} is closed")
        fork = SessionFork(n, Future(), undo)
        self._reactor.here(partial(self._enqueue, fork))
        return fork.future

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._reactor.here(partial(self.abandon, "closed while the call was waiting"))

    def begin(self) -> None:
        """Requests the session's place in a sandbox before the first call."""
        if not self._closed:
            self._placement.begin()

    def abandon(self, why: str) -> None:
        """Ends the session; waiting calls fail with the reason."""
        self._closed = True
        self._placement.end()
        waiting = [self._active] if self._active is not None else []
        waiting += [job for job in self._queue if job.future.set_running_or_notify_cancel()]
        self._active = None
        self._queue.clear()
        for job in waiting:
            job.future.set_exception(BadRequestError(f"{self.id}: {why}"))
        self._ports.gone(self._terms.session)

    def _enqueue(self, job: SessionCall | SessionFork) -> None:
        if self._closed:
            if job.future.set_running_or_notify_cancel():
                job.future.set_exception(BadRequestError(f"{self.id} is closed"))
            return
        self._queue.append(job)
        if self._active is None:
            self._next()

    def _next(self) -> None:
        if self._advancing:  # the job started below ended immediately: the loop continues
            return
        self._advancing = True
        while self._queue and self._active is None:
            job = self._queue.popleft()
            if job.future.set_running_or_notify_cancel():
                self._active = job
                self._begin(job)
        self._advancing = False

    def _begin(self, job: SessionCall | SessionFork) -> None:
        if isinstance(job, SessionFork):
            self._placement.fork(job.sessions, partial(self._forked, job), undo=job.undo)
        elif self._account.calls >= self._ports.limits.calls:
            self._answered(job, not_run(self._ports.limits, self.tier))
        else:
            self._account.calls += 1
            self._placement.run(job)

    def _answered(self, call: SessionCall, result: CallResult) -> None:
        self._active = None
        self._account.called(result.seconds, len(result.output.encode()))
        self._ports.count(result)
        call.future.set_result(result)
        self._next()

    def _failed(self, call: SessionCall, error: SandboxError) -> None:
        self._active = None
        call.future.set_exception(error)
        self._next()

    def _forked(self, fork: SessionFork, seeds: list[Seed] | SandboxError) -> None:
        if fork is not self._active:  # closed meanwhile
            for seed in seeds if isinstance(seeds, list) else []:
                seed.release()
            return
        self._active = None
        if isinstance(seeds, SandboxError):
            fork.future.set_exception(seeds)
        else:
            fork.future.set_result(self._ports.born(self._terms, seeds))
        self._next()
