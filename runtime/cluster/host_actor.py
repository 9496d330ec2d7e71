"""One host's part for one driver: it opens sessions of this host's own pool and passes calls and results on.

What always holds: every call is answered once; a call never waits for another session's, what blocks runs on threads
of its own; a driver that was silent for the lease is gone, and everything it had here is closed. It knows nothing of
Ray: `submit` and `collect`, each called by one thread at a time, carry packets of `runtime.cluster.messages`, and that
is all that crosses the wire.
"""

from __future__ import annotations

import fcntl
import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

from pydantic import BaseModel

from runtime.cluster import messages as m
from runtime.cluster.boxes import Boxes
from runtime.cluster.settings import HostSettings
from runtime.errors import BadRequestError, BusyError, RefusedError, SandboxError
from runtime.sandbox import CallResult, Limits, Session, SessionPool

log = logging.getLogger(__name__)
THREADS = 16
"""For what blocks: branches, figures."""
PACKET_REPORTS = 512
"""In one packet; more go with the next."""
LOOK_SECONDS = 0.5
"""How old what a pulse says may be."""


class HostActor:
    """`pool` makes the pool once the driver has said hello; `ended` is called when nothing is left to do here."""

    def __init__(
        self,
        settings: HostSettings,
        pool: Callable[[Limits], SessionPool],
        ended: Callable[[], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._settings, self._make_pool, self._ended, self._clock = settings, pool, ended, clock
        self._pool: SessionPool | None = None
        self._boxes: Boxes | None = None
        self._sessions: dict[int, Session] = {}
        self._unopened: dict[int, m.Trouble] = {}
        self._reports: deque[BaseModel] = deque()
        self._some = threading.Event()
        """There may be reports."""
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="host")
        self._heard = clock()
        self._looked = 0.0
        self._draining = False
        self._lock: int | None = None
        self._guard = threading.Lock()
        self._watch: threading.Thread | None = None
        self._closed = threading.Event()

    def submit(self, packets: list[bytes]) -> None:
        """Takes packets in the order in which the driver made them. Raises ValueError for what is none."""
        self._listen()
        for packet in packets:
            for command in m.commands(packet):
                self._carry_out(command)

    def collect(self, seconds: float) -> bytes:
        """What has happened since, at the latest after that many seconds; ends with a pulse."""
        self._listen()
        deadline = time.monotonic() + seconds
        while not self._reports:
            self._some.clear()
            if self._reports or not self._some.wait(deadline - time.monotonic()):
                break
        self._heard = self._clock()
        reports = [self._reports.popleft() for _ in range(min(len(self._reports), PACKET_REPORTS))]
        return m.packet([*reports, self._pulse()])

    def report(self) -> bytes:
        """A pulse, for people."""
        return self._pulse().model_dump_json().encode()

    def close(self) -> None:
        """Ends every session; nothing of them is left on this host."""
        with self._guard:
            if self._closed.is_set():
                return
            self._closed.set()
        if self._boxes is not None:
            self._boxes.close()
        if self._pool is not None:
            self._pool.close()
        self._threads.shutdown(wait=False, cancel_futures=True)
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _listen(self) -> None:
        self._heard = self._clock()
        with self._guard:
            if self._watch is None:
                self._watch = threading.Thread(target=self._watch_the_driver, name="lease", daemon=True)
                self._watch.start()

    def _watch_the_driver(self) -> None:
        lease = self._settings.lease_seconds
        while self._clock() - self._heard < lease:
            if self._closed.wait(min(1.0, lease / 4)):
                return
        log.error("the driver was silent for %.0f s: its sessions are closed", lease)
        self.close()
        self._ended()

    def _carry_out(self, command: m.Command) -> None:
        try:
            if isinstance(command, m.Hello):
                self._hello(command)
            elif isinstance(command, m.Open):
                self._open(command)
            elif isinstance(command, m.Call):
                self._call(command)
            elif isinstance(command, m.Fork):
                self._fork(command)
            elif isinstance(command, m.Measure):
                self._measure(command)
            elif isinstance(command, m.Forget):
                self._forget(command)
            elif isinstance(command, m.Close):
                self._close(command)
            elif isinstance(command, m.Box):
                self._known_boxes().open(command)
            else:
                self._known_boxes().do(command)
        except SandboxError as error:
            self._fail(command, error)

    def _hello(self, hello: m.Hello) -> None:
        try:
            if hello.protocol != m.PROTOCOL:
                raise BadRequestError(
                    f"this host speaks version {m.PROTOCOL} of the protocol, the driver {hello.protocol}",
                    hint="install the same version of Assay on every host",
                )
            if hello.backend is not self._settings.runtime.backend:
                raise RefusedError(
                    f"this host runs code under {self._settings.runtime.backend}, not under {hello.backend}",
                    hint="the policies of the hosts have to agree on [sandboxes] model_code",
                )
            if self._settings.draining.exists():
                raise BusyError("this host is leaving the cluster")
            self._hold()
            self._pool = self._make_pool(hello.limits)
            self._boxes = Boxes(self._pool, self._say)
        except (SandboxError, OSError) as error:
            self._say(m.Turned(trouble=m.Trouble.of(error)))
            return
        settings = self._settings
        self._say(m.Welcome(protocol=m.PROTOCOL, name=settings.name, capacity=settings.capacity, limits=hello.limits))

    def _hold(self) -> None:
        """Tells the host's own process that a driver is here, for as long as this process lives."""
        self._lock = os.open(self._settings.in_use, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_SH | fcntl.LOCK_NB)

    def _open(self, command: m.Open) -> None:
        try:
            self._sessions[command.session] = self._known_pool().open(
                tier=command.tier, caller=command.caller, priority=command.priority, files=command.files
            )
        except SandboxError as error:
            self._unopened[command.session] = m.Trouble.of(error)
            self._fail(command, error)

    def _call(self, command: m.Call) -> None:
        session = self._session(command.session)
        future = session.start(
            command.code.decode("utf-8", "surrogatepass"), seconds=command.seconds, keep=command.keep
        )
        future.add_done_callback(lambda done: self._called(command, done))

    def _called(self, command: m.Call, done: Future[CallResult]) -> None:
        """On the pool's thread, which must not wait."""
        error = done.exception()
        if error is None:
            self._say(m.Called(session=command.session, call=command.call, result=done.result()))
        else:
            self._fail(command, error)

    def _measure(self, command: m.Measure) -> None:
        session = self._session(command.session)
        self._aside(command, lambda: m.Did(session=command.session, call=command.call, usage=session.usage))

    def _forget(self, command: m.Forget) -> None:
        pool = self._known_pool()

        def forget() -> m.Did:
            pool.forget(command.snapshot)
            return m.Did(session=0, call=command.call)

        self._aside(command, forget)

    def _fork(self, command: m.Fork) -> None:
        session = self._session(command.session)
        if set(command.into) & self._sessions.keys():
            raise BadRequestError("a session with that number is there already")

        def fork() -> m.Did:
            branches = session.fork(len(command.into), undo=command.undo)
            self._sessions.update(zip(command.into, branches, strict=True))
            return m.Did(session=command.session, call=command.call)

        self._aside(command, fork)

    def _aside(self, command: m.Command, job: Callable[[], m.Did]) -> None:
        """Does what waits on another thread, and says what came of it."""

        def finished(done: Future[m.Did]) -> None:
            if not done.cancelled():
                error = done.exception()
                if error is None:
                    self._say(done.result())
                else:
                    self._fail(command, error)

        self._threads.submit(job).add_done_callback(finished)

    def _close(self, command: m.Close) -> None:
        self._unopened.pop(command.session, None)
        session = self._sessions.pop(command.session, None)
        if session is not None:
            session.close()
        elif self._boxes is not None:
            self._boxes.end(command.session)

    def _session(self, number: int) -> Session:
        session = self._sessions.get(number)
        if session is None:
            raise (
                self._unopened[number].exception()
                if number in self._unopened
                else BadRequestError(f"session {number} is closed")
            )
        return session

    def _known_pool(self) -> SessionPool:
        if self._pool is None:
            raise BadRequestError("the driver has not said hello")
        return self._pool

    def _known_boxes(self) -> Boxes:
        if self._boxes is None:
            raise BadRequestError("the driver has not said hello")
        return self._boxes

    def _say(self, report: BaseModel) -> None:
        """From any thread."""
        self._reports.append(report)
        self._some.set()

    def _fail(self, command: m.Command, error: BaseException) -> None:
        if not isinstance(error, SandboxError):
            log.error("a command of the driver failed", exc_info=error)
        self._say(
            m.Failed(
                session=getattr(command, "session", 0), call=getattr(command, "call", 0), trouble=m.Trouble.of(error)
            )
        )

    def _pulse(self) -> m.Pulse:
        due = self._clock() - self._looked > LOOK_SECONDS
        if due:
            self._looked = self._clock()
            self._draining = self._settings.draining.exists()
        return m.Pulse(
            draining=self._draining,
            sessions=len(self._sessions) + (len(self._boxes) if self._boxes is not None else 0),
            stats=self._pool.stats() if due and self._pool is not None else None,
        )
