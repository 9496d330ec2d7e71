"""Where sessions get their places: shared interpreters, processes in one sandbox, sandboxes of their own.

What always holds: nothing is started before somebody asks, the numbers of places in the settings are never exceeded
(who comes later waits), and `close` leaves no process, cgroup, mount or file. The pool and everything in it live on one
reactor thread; callers on other threads only hand calls over and wait for futures.
"""

from __future__ import annotations

import contextlib
import itertools
import os
from collections import Counter, deque
from collections.abc import Callable
from concurrent.futures import Future
from types import TracebackType
from typing import Self
from weakref import WeakSet

from runtime.backends.bundle import Mode, Profile
from runtime.backends.gvisor import GVisorBackend
from runtime.errors import BadRequestError, InfrastructureError, SandboxError
from runtime.guest.wire import Kind, Op
from runtime.reactor import Reactor
from runtime.sandbox import CallResult, Limits, Session, Tier
from runtime.sessions.places import Seat
from runtime.sessions.session import LiveSession
from runtime.sessions.solo import READ_BYTES, GVisorSandbox
from runtime.sessions.worker import Ending, Lost, Worker
from runtime.settings import RuntimeSettings

OPEN_SECONDS = 20.0
Job = Callable[[Callable[[], None]], None]


def profile(mode: Mode, limits: Limits, settings: RuntimeSettings) -> Profile:
    """What a sandbox of each tier may use. Those with many sessions get a multiple, each session its own part."""
    many = settings.process_sessions
    memory, address_space, pids, cpus, ahead = {
        "shared": (2 * limits.memory_mib, limits.memory_mib, limits.pids, limits.cpus, 0),
        "process": (
            4 * limits.memory_mib,
            limits.memory_mib,
            limits.pids + 8 * many,
            max(limits.cpus, float(os.cpu_count() or 1)),
            settings.process_children,
        ),
        "sandbox": (limits.memory_mib, 4 * limits.memory_mib, limits.pids, limits.cpus, 1),
    }[mode]
    return Profile(
        mode=mode,
        memory_mib=memory,
        process_memory_mib=address_space,
        pids=pids,
        cpus=cpus,
        tmp_mib=limits.tmp_mib,
        work_mib=limits.work_mib,
        output_bytes=limits.output_bytes,
        slice_seconds=settings.slice_seconds,
        ahead=ahead,
    )


class _Chair:
    """A seat; who leaves it does so once."""

    def __init__(self, worker: Worker, left: Callable[[], None]) -> None:
        self.worker = worker
        self._left: Callable[[], None] | None = left

    def leave(self) -> None:
        left, self._left = self._left, None
        if left is not None:
            left()


class GVisorSessions:
    """The one implementation of `runtime.sandbox.SessionPool`."""

    def __init__(self, settings: RuntimeSettings) -> None:
        """Raises RefusedError when sandboxes cannot be had here; starts none yet."""
        self.settings = settings
        self.limits = settings.limits
        self._backend = GVisorBackend(settings)
        self._reactor = Reactor()
        self._numbers = itertools.count(1)
        self._sessions: dict[int, LiveSession] = {}
        self._solos: WeakSet[GVisorSandbox] = WeakSet()
        self._counts: Counter[str] = Counter()
        self._seconds = 0.0
        self._closed = False
        self._workers: set[Worker] = set()
        self._shared: list[Worker | None] = [None] * settings.shared_workers
        self._spare: Worker | None = None
        self._process: Worker | None = None
        self._process_seats = 0
        self._sandbox_seats = 0
        self._ready: deque[Worker] = deque()
        self._queues: dict[Tier, deque[Callable[[], None]]] = {Tier.PROCESS: deque(), Tier.SANDBOX: deque()}
        self._cores = max(2, os.cpu_count() or 1)
        self._busy: Counter[Worker] = Counter()
        self._turns: deque[tuple[Worker, Job]] = deque()

    # for callers, from any thread

    def open(self, *, tier: Tier = Tier.SHARED) -> Session:
        """A fresh session. Raises BadRequestError after `close`."""
        if self._closed:
            raise BadRequestError("the pool of sessions is closed")
        number = next(self._numbers)
        session = LiveSession(number, self, self._reactor.call, tier)
        self._reactor.call(lambda: self._opened(number, session))
        return session

    def sandbox(self, limits: Limits | None = None) -> GVisorSandbox:
        """A sandbox of its own, with files and programs, outside the count of sessions. Returns when it is ready.

        Raises InfrastructureError when it does not start, BadRequestError after `close`.
        """
        if self._closed:
            raise BadRequestError("the pool of sessions is closed")
        chosen = limits or self.limits
        ready: Future[GVisorSandbox] = Future()

        def begin() -> None:
            worker = self._start(profile("sandbox", chosen, self.settings), reply_bytes=READ_BYTES)
            worker.when_settled(lambda: self._solo_ready(worker, chosen, ready))

        self._reactor.call(begin)
        return ready.result()

    def stats(self) -> dict[str, float]:
        return {**{key: float(value) for key, value in sorted(self._counts.items())}, "seconds": self._seconds}

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        done: Future[None] = Future()

        def end() -> None:
            try:
                for session in list(self._sessions.values()):
                    session.abandon("the pool of sessions was closed")
                for solo in self._solos:
                    solo.forbid()
                for worker in list(self._workers):
                    worker.lose(Lost.DIED)
            finally:
                done.set_result(None)

        self._reactor.call(end)
        done.result()
        try:
            self._backend.close()
        finally:
            self._reactor.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # for sessions, on the reactor's thread

    def shared(self, session: int, given: Callable[[Worker | SandboxError], None]) -> None:
        """The interpreter in which this session belongs."""
        place = session % len(self._shared)
        worker = self._shared[place]
        if worker is None:
            worker = self._shared[place] = self._start(profile("shared", self.limits, self.settings))
        worker.when_settled(lambda: given(worker if worker.state == "ready" else _problem(worker)))

    def seat(self, tier: Tier, session: int, given: Callable[[Seat | SandboxError], None]) -> None:
        """A process or a sandbox of its own, as soon as one is free."""
        self._queues[tier].append(lambda: self._give(tier, session, given))
        self._serve(tier)

    def in_turn(self, worker: Worker, job: Job) -> None:
        """In a sandbox of many, not more calls run at once than there are cores: each has its seconds to itself."""
        if worker.profile.mode != "process":
            job(_nothing)
        else:
            self._turns.append((worker, job))
            self._take_turns(worker)

    def count(self, result: CallResult) -> None:
        self._counts["calls"] += 1
        self._counts[f"calls_{result.tier.value}"] += 1
        self._counts[f"status_{result.status.value}"] += 1
        self._seconds += result.seconds

    def gone(self, session: int) -> None:
        self._sessions.pop(session, None)

    # inside

    def _opened(self, number: int, session: LiveSession) -> None:
        self._sessions[number] = session
        if session.tier is Tier.SHARED:
            self.shared(number, _nothing_with)

    def _start(self, wanted: Profile, *, reply_bytes: int = 0) -> Worker:
        worker = Worker(self._reactor, self._backend, wanted, ended=self._ended, reply_bytes=reply_bytes)
        self._workers.add(worker)
        self._counts["sandboxes_started"] += 1
        if wanted.mode == "shared":
            worker.when_settled(lambda: self._keep_spare(worker))
        return worker

    def _keep_spare(self, worker: Worker) -> None:
        if worker.state == "ready" and self._spare is None and not self._closed:
            self._spare = self._start(profile("shared", self.limits, self.settings))

    def _ended(self, worker: Worker) -> None:
        self._workers.discard(worker)
        self._counts["sandboxes_killed"] += 1
        if worker is self._spare:
            self._spare = None
        if worker in self._shared:
            place = self._shared.index(worker)
            self._shared[place], self._spare = self._spare, None
            heir = self._shared[place]
            if heir is not None:
                heir.when_settled(lambda: self._keep_spare(heir))
        if worker is self._process:
            self._process = None
        with contextlib.suppress(ValueError):
            self._ready.remove(worker)

    def _serve(self, tier: Tier) -> None:
        queue = self._queues[tier]
        while queue and not self._closed:
            if tier is Tier.PROCESS:
                if self._process_seats >= self.settings.process_sessions:
                    return
                self._process_seats += 1
            else:
                if self._sandbox_seats >= self.settings.sandboxes:
                    return
                self._sandbox_seats += 1
            queue.popleft()()

    def _give(self, tier: Tier, session: int, given: Callable[[Seat | SandboxError], None]) -> None:
        worker = self._process_worker() if tier is Tier.PROCESS else self._sandbox_worker()

        def leave() -> None:
            if tier is Tier.PROCESS:
                self._process_seats -= 1
                worker.tell(Op.DROP, session)
            else:
                self._sandbox_seats -= 1
                worker.lose(Lost.DIED)
            self._serve(tier)

        chair = _Chair(worker, leave)

        def opened(ending: Ending) -> None:
            lost_by_others = tier is Tier.PROCESS and isinstance(ending.kind, Lost) and worker.problem is None
            if ending.kind is Kind.READY or lost_by_others:  # the session finds the seat lost, and goes again
                given(chair)
            else:
                chair.leave()
                given(_problem(worker))

        def settled() -> None:
            if worker.state == "ready":
                worker.send(Op.OPEN, session, b"", OPEN_SECONDS, opened)
            else:
                chair.leave()
                given(_problem(worker))

        worker.when_settled(settled)

    def _process_worker(self) -> Worker:
        if self._process is None:
            self._process = self._start(profile("process", self.limits, self.settings))
        return self._process

    def _sandbox_worker(self) -> Worker:
        wanted = profile("sandbox", self.limits, self.settings)
        worker = self._ready.popleft() if self._ready else self._start(wanted)
        worker.when_settled(lambda: self._keep_ready(wanted) if worker.state == "ready" else None)
        return worker

    def _keep_ready(self, wanted: Profile) -> None:
        while len(self._ready) < self.settings.ready_sandboxes and not self._closed:
            self._ready.append(self._start(wanted))

    def _take_turns(self, worker: Worker) -> None:
        for _ in range(len(self._turns)):
            if self._busy[worker] >= self._cores:
                return
            mine, job = self._turns.popleft()
            if mine is not worker:
                self._turns.append((mine, job))
                continue
            self._busy[worker] += 1
            job(lambda: self._turn_over(worker))

    def _turn_over(self, worker: Worker) -> None:
        self._busy[worker] -= 1
        if not self._busy[worker]:
            del self._busy[worker]
        self._reactor.call(lambda: self._take_turns(worker))

    def _solo_ready(self, worker: Worker, limits: Limits, ready: Future[GVisorSandbox]) -> None:
        def opened(ending: Ending) -> None:
            if ending.kind is Kind.READY:
                solo = GVisorSandbox(worker, limits, self._reactor.call)
                self._solos.add(solo)
                ready.set_result(solo)
            else:
                worker.lose(Lost.DIED)
                ready.set_exception(_problem(worker))

        if worker.state == "ready":
            worker.send(Op.OPEN, 0, b"", OPEN_SECONDS, opened)
        else:
            ready.set_exception(_problem(worker))


def _problem(worker: Worker) -> SandboxError:
    return worker.problem or InfrastructureError(
        f"sandbox {worker.id} ended before it could be used",
        hint="Run `assay doctor`; it shows what runsc and the kernel can do here.",
    )


def _nothing() -> None:
    """For a job that took no turn."""


def _nothing_with(_place: object) -> None:
    """For who only wants it started."""
