"""One host's part for one driver: opens sessions and sandboxes in its own pool and forwards calls and results.

Invariants: every call is answered once; a call never waits for another session's, blocking work runs on separate
threads; a sandbox closed by the driver ends immediately, even while starting or during a program; a driver that was
silent for the lease is gone, and everything it had here is closed. Independent of Ray: `submit` and `collect`, each
called by one thread at a time, carry packets of `runtime.cluster.messages`, and nothing else crosses the wire.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import queue
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from pydantic import BaseModel

from runtime.backends.packages import packages_digest
from runtime.broker.messages import WireFailure
from runtime.cluster import messages as m
from runtime.cluster.settings import INSTALL, HostSettings, own_digest
from runtime.errors import BadRequestError, BusyError, RefusedError, SandboxError
from runtime.sandbox import Limits, Sandbox, Session, SessionPool, SnapshotId

log = logging.getLogger(__name__)
MOST = 256
"""Most sandboxes of one driver on one host, including waiting ones."""
THREADS = 16
"""Additional threads for other blocking work: branches, figures, endings."""
PACKET_REPORTS = 512
"""Most reports per packet; more go into the next."""
DRIVER_CHECK_SECONDS = 0.5
"""Largest age of the figures in a pulse, in seconds."""


class HostActor:
    """Runs one driver's sessions and sandboxes on a host. `pool` creates the session pool after the driver's hello;
    `ended` is called when nothing is left to do."""

    def __init__(
        self, settings: HostSettings, pool: Callable[[Limits], SessionPool], ended: Callable[[], None]
    ) -> None:
        self._settings, self._make_pool, self._ended = settings, pool, ended
        self._pool: SessionPool | None = None
        self._sessions: dict[int, Session] = {}
        self._unopened: dict[int, WireFailure] = {}
        self._boxes: dict[int, Sandbox | None] = {}
        """Sandboxes by number; None while starting."""
        self._reports: queue.SimpleQueue[BaseModel] = queue.SimpleQueue()
        self._threads = ThreadPoolExecutor(MOST + THREADS, thread_name_prefix="host")
        """Each sandbox has one call at a time, so no sandbox ever waits for a thread."""
        self._last_contact = time.monotonic()
        self._looked = 0.0
        self._draining = False
        self._lock: int | None = None
        self._guard = threading.Lock()
        self._watch: threading.Thread | None = None
        self._closed = threading.Event()

    def submit(self, packets: list[bytes]) -> None:
        """Executes the commands in a driver's packets, in order.

        Raises ValueError for an invalid packet; a driver whose first packet is invalid has another version and is
        turned away.
        """
        self._listen()
        for packet in packets:
            try:
                commands = m.commands(packet)
            except ValueError:
                if self._pool is not None:
                    raise
                error = BadRequestError("this host cannot read the driver's messages", hint=INSTALL)
                self._reports.put(m.Turned(failure=WireFailure.of(error)))
                return
            for command in commands:
                try:
                    self._carry_out(command)
                except SandboxError as error:
                    self._fail(command, error)

    def collect(self, seconds: float) -> bytes:
        """Returns a packet of new reports for the driver, at the latest after `seconds`; the last report is a pulse."""
        self._listen()
        reports: list[BaseModel] = []
        with contextlib.suppress(queue.Empty):
            reports.append(self._reports.get(timeout=seconds))
            while len(reports) < PACKET_REPORTS:
                reports.append(self._reports.get_nowait())
        self._last_contact = time.monotonic()
        return m.packet([*reports, self._pulse()])

    def report(self) -> bytes:
        """Returns the host's current figures as a pulse, for status displays."""
        return self._pulse().model_dump_json().encode()

    def close(self) -> None:
        """Ends every session of the driver; nothing of them is left on this host."""
        with self._guard:
            if self._closed.is_set():
                return
            self._closed.set()
        if self._pool is not None:
            self._pool.close()
        self._threads.shutdown(wait=False, cancel_futures=True)
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _listen(self) -> None:
        self._last_contact = time.monotonic()
        with self._guard:
            if self._watch is None:
                self._watch = threading.Thread(target=self._watch_the_driver, name="lease", daemon=True)
                self._watch.start()

    def _watch_the_driver(self) -> None:
        lease = self._settings.lease_seconds
        while time.monotonic() - self._last_contact < lease:
            if self._closed.wait(min(1.0, lease / 4)):
                return
        log.error("closing the sessions of a driver that was silent for %.0f s", lease)
        self.close()
        self._ended()

    def _carry_out(self, command: m.Command) -> None:
        match command:
            case m.DriverHello():
                self._hello(command)
            case m.OpenSession():
                self._open(command)
            case m.OpenBox():
                self._open_box(command)
            case m.Do():
                self._do(command)
            case m.Close():
                self._close(command.session)

    def _hello(self, hello: m.DriverHello) -> None:
        try:
            if hello.protocol != m.PROTOCOL:
                raise BadRequestError(
                    f"this host speaks version {m.PROTOCOL} of the protocol, the driver {hello.protocol}", hint=INSTALL
                )
            if hello.program != own_digest():
                raise RefusedError("this host has another version of Assay than the driver", hint=INSTALL)
            if hello.backend is not self._settings.runtime.backend:
                raise RefusedError(
                    f"this host runs code under {self._settings.runtime.backend}, not under {hello.backend}",
                    hint="use the same [sandboxes] model_code in the policies of all hosts",
                )
            if hello.packages != packages_digest(self._settings.runtime.own.packages):
                raise RefusedError(
                    "this host's sandboxes have other packages than the driver's machine",
                    hint="install with the same options on every host, or set sandbox.packages to equal folders",
                )
            if self._settings.draining.exists():
                raise BusyError("this host is leaving the cluster")
            self._hold()
            self._pool = self._make_pool(hello.limits)
        except (SandboxError, OSError) as error:
            self._reports.put(m.Turned(failure=WireFailure.of(error)))
            return
        self._reports.put(m.HostWelcome(name=self._settings.name, capacity=self._settings.capacity))

    def _hold(self) -> None:
        """Takes a shared lock on the host's file `in_use`, kept until this process ends. It tells the node that a
        driver is at work here."""
        self._lock = os.open(self._settings.in_use, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_SH | fcntl.LOCK_NB)

    def _known_pool(self) -> SessionPool:
        if self._pool is None:
            raise BadRequestError("the driver has not said hello")
        return self._pool

    def _check_new(self, *numbers: int) -> None:
        if (self._sessions.keys() | self._boxes.keys()).intersection(numbers):
            raise BadRequestError("a session or sandbox with that number already exists")

    def _open(self, command: m.OpenSession) -> None:
        self._check_new(command.session)
        try:
            self._sessions[command.session] = self._known_pool().open(
                tier=command.tier,
                caller=command.caller,
                priority=command.priority,
                files=command.files,
                userland=command.userland,
                packages=command.packages,
            )
        except SandboxError as error:
            self._unopened[command.session] = WireFailure.of(error)
            raise

    def _open_box(self, command: m.OpenBox) -> None:
        pool = self._known_pool()

        def open_one() -> Sequence[Sandbox]:
            return [
                pool.sandbox(
                    command.limits,
                    userland=command.userland,
                    packages=command.packages,
                    snapshot=command.snapshot,
                    caller=command.caller,
                    priority=command.priority,
                )
            ]

        self._make_boxes(command, (command.session,), open_one)

    def _do(self, command: m.Do) -> None:
        pool = self._known_pool()
        session, box = self._sessions.get(command.session), self._boxes.get(command.session)
        if command.what == "forget":
            self._aside(command, lambda: pool.forget(SnapshotId(command.text)))
        elif session is not None and command.what == "run":
            running = session.start(
                _code(command), seconds=command.seconds, keep=command.keep, patience=command.patience
            )
            running.add_done_callback(lambda done: self._answer(command, done, "result"))
        elif session is not None:
            self._check_new(*command.into)
            self._aside(command, lambda: self._of_session(session, command))
        elif box is not None and command.what == "fork":
            self._make_boxes(command, command.into, lambda: box.fork(SnapshotId(command.text), len(command.into)))
        elif box is not None:
            self._aside(command, lambda: _of_box(box, command))
        elif command.session in self._unopened:
            raise self._unopened[command.session].exception()
        else:
            raise BadRequestError(f"session {command.session} is closed")

    def _of_session(self, session: Session, command: m.Do) -> dict[str, object]:
        if command.what == "measure":
            return {"usage": session.usage}
        if command.what != "fork":
            raise BadRequestError(f"a session does not support {command.what!r}")
        branches = session.fork(len(command.into), undo=command.undo)
        self._sessions.update(zip(command.into, branches, strict=True))
        return {}

    def _make_boxes(
        self, command: m.OpenBox | m.Do, numbers: tuple[int, ...], make: Callable[[], Sequence[Sandbox]]
    ) -> None:
        """Starts sandboxes on another thread; reserves their numbers immediately. Raises BusyError beyond `MOST`."""
        self._check_new(*numbers)
        if len(self._boxes) + len(numbers) > MOST:
            raise BusyError(f"this driver already has {MOST} sandboxes on this host")
        self._boxes.update(dict.fromkeys(numbers))

        def made() -> dict[str, object]:
            try:
                boxes = dict(zip(numbers, make(), strict=True))
            except BaseException:
                for number in numbers:
                    self._boxes.pop(number, None)
                raise
            with self._guard:
                unwanted = boxes.keys() - self._boxes.keys()  # closed while they were still starting
                self._boxes.update({number: box for number, box in boxes.items() if number not in unwanted})
            for number in unwanted:
                boxes[number].close()
            return {"boxes": tuple(box.id for box in boxes.values()), "limits": boxes[numbers[0]].limits}

        self._aside(command, made)

    def _aside(self, command: m.OpenBox | m.Do, job: Callable[[], dict[str, object] | None]) -> None:
        """Runs a command's blocking job on another thread, and reports the result to the driver."""
        self._threads.submit(job).add_done_callback(lambda done: self._answer(command, done))

    def _answer(self, command: m.OpenBox | m.Do, done: Future[Any], field: str | None = None) -> None:
        """Reports a job's result to the driver, as fields or the named field; on the job's thread, never waiting."""
        if done.cancelled():
            return
        error = done.exception()
        if error is not None:
            self._fail(command, error)
            return
        fields = {field: done.result()} if field is not None else done.result() or {}
        self._reports.put(m.Did(session=command.session, call=command.call, **fields))

    def _close(self, number: int) -> None:
        self._unopened.pop(number, None)
        session = self._sessions.pop(number, None)
        if session is not None:
            session.close()
        with self._guard:
            box = self._boxes.pop(number, None)
        if box is not None:
            self._threads.submit(box.close)

    def _fail(self, command: m.Command, error: BaseException) -> None:
        if not isinstance(error, SandboxError):
            log.error("a command of the driver failed", exc_info=error)
        numbers = {name: getattr(command, name, 0) for name in ("session", "call")}
        self._reports.put(m.CallFailed(**numbers, failure=WireFailure.of(error)))

    def _pulse(self) -> m.Pulse:
        due = time.monotonic() - self._looked > DRIVER_CHECK_SECONDS
        if due:
            self._looked = time.monotonic()
            self._draining = self._settings.draining.exists()
        return m.Pulse(
            draining=self._draining,
            sessions=len(self._sessions) + len(self._boxes),
            stats=self._pool.stats() if due and self._pool is not None else None,
        )


def _code(command: m.Do) -> str:
    return command.data.decode("utf-8", "surrogatepass")


def _of_box(box: Sandbox, command: m.Do) -> dict[str, object]:
    """Executes a driver's command on a sandbox and returns the result, as fields of `Did`."""
    match command.what:
        case "run":
            return {"result": box.run(_code(command), seconds=command.seconds, patience=command.patience)}
        case "exec":
            ran = box.exec(
                command.arguments,
                stdin=command.data,
                env=command.variables,
                cwd=command.cwd,
                user=command.user,
                seconds=command.seconds,
                output_bytes=command.number or None,
                patience=command.patience,
            )
            return {"ran": ran}
        case "write":
            box.write(command.text, command.data)
        case "read":
            return {"data": box.read(command.text, max_bytes=command.number)}
        case "list":
            return {"entries": tuple(box.list(command.text))}
        case "snapshot":
            return {"text": box.snapshot(durable=command.durable)}
        case "prepare":
            box.prepare(SnapshotId(command.text), command.number)
        case "restore":
            box.restore(SnapshotId(command.text))
            return {"boxes": (box.id,)}
        case "measure":
            return {"usage": box.usage}
    return {}
