"""Boxes that run a program of ours, driven over pipes: for tools that parse what a model wrote.

Invariants: a box is used by one thread at a time; waiting for an answer is always bounded; `kill` ends everything
inside and returns why it ended, as the kernel and the broker know it. Output of a box is hostile: JSON of bounded size,
which the caller must validate.
"""

from __future__ import annotations

import contextlib
import os
import select
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Literal

from runtime.broker_api import Handle, Termination, Ticket
from runtime.errors import InfrastructureError, SandboxError
from runtime.framing import FrameError
from runtime.profile import BackendName, BoxUsage, Cause, Profile
from runtime.reactor import Reactor
from runtime.sandbox import ClosesOnExit, Priority
from runtime.settings import RuntimeSettings
from verifiers.boxes.frames import Frames, encode

if TYPE_CHECKING:  # loaded with the first box: most checks need none
    from runtime.sessions import BrokerConnection

READ = 1 << 20
START_SECONDS = 90.0
"""Time limit for a private broker to start and the program to become ready, in seconds."""
END_SECONDS = 15.0
GIVES_WAY_SECONDS = 0.2
"""Seconds without an answer after which a box yields CPU to others."""
GIVES_WAY_UNTIL = 10.0
"""Seconds without an answer after which a box gets its CPU share back, so that hard but valid work finishes on a busy
machine."""
LAST_SECONDS = 0.5
"""Final seconds of the time for an answer, with full CPU share, so that late work is ended in time."""
Question = Callable[["BrokerConnection", Callable[[Any], None]], Ticket | None]
"""Sends a request to the broker and registers a callback for the answer."""


class BoxLost(Exception):
    """The box gave no answer, and has to be killed. `cause`: `timeout`, or how it ended: `memory`, `cpu`, `expired`,
    `died`, or `start` if it never started."""

    def __init__(self, cause: str, message: str, usage: BoxUsage | None = None) -> None:
        super().__init__(message)
        self.cause = cause
        self.usage = usage if usage is not None else BoxUsage()


class ToolBox:
    """One of our own programs, running in a sandbox. Except for `kill`, not for concurrent use."""

    def __init__(self, boxes: ToolBoxes, handle: Handle) -> None:
        self.id = handle.id
        self.isolation: Literal["nsjail", "gvisor"] = handle.profile.backend.value
        """Isolation, as verdicts name it."""
        self._boxes, self._handle = boxes, handle
        # duplicates, because another thread closes the originals when the box ends
        self._requests, self._replies = os.dup(handle.requests), os.dup(handle.replies)
        self._frames = Frames()
        self._ending = threading.Lock()
        self._termination: Termination | None = None

    def ask(self, message: dict[str, Any], seconds: float) -> dict[str, Any]:
        """Sends a message to a box's program and waits for its reply. Raises BoxLost; the box must then be killed.
        While the reply is slow, the box yields CPU to others for a time."""
        begun = time.monotonic()
        deadline = begun + seconds
        self.send(message, deadline)
        patient, last = begun + GIVES_WAY_SECONDS, min(begun + GIVES_WAY_UNTIL, deadline - LAST_SECONDS)
        if patient < last and not _wait(self._replies, select.POLLIN, patient):
            self.give_way(True)
            try:
                _wait(self._replies, select.POLLIN, last)
            finally:
                self.give_way(False)
        return self.receive(deadline)

    def send(self, message: dict[str, Any], deadline: float) -> None:
        """Sends a message to a box's program. `deadline` is on the clock of time.monotonic(). Raises BoxLost."""
        data = memoryview(encode(message))
        while data:
            try:
                data = data[os.write(self._requests, data) :]
            except BlockingIOError:
                if not _wait(self._requests, select.POLLOUT, deadline):
                    raise BoxLost("timeout", "the program does not read") from None
            except OSError:
                raise self._death() from None

    def receive(self, deadline: float) -> dict[str, Any]:
        """Returns the next message of a box's program. Raises BoxLost on a timeout or if the box has ended."""
        while True:
            try:
                message = self._frames.next()
            except FrameError as error:
                raise BoxLost("died", str(error)) from error
            if isinstance(message, dict):
                return message
            if message is not None:
                raise BoxLost("died", "the answer is not an object")
            if not _wait(self._replies, select.POLLIN, deadline):
                raise BoxLost("timeout", "no answer in time")
            try:
                data = os.read(self._replies, READ)
            except BlockingIOError:
                continue
            except OSError:
                raise self._death() from None
            if not data:
                raise self._death()
            self._frames.feed(data)

    @property
    def descriptors(self) -> tuple[int, int]:
        """Returns the descriptors for requests and replies, non-blocking, for callers that poll several boxes."""
        return self._requests, self._replies

    def usage(self) -> BoxUsage:
        """Returns the resources that the box has used so far, as the kernel counts them. Raises SandboxError."""

        used: BoxUsage = self._boxes.asked(lambda connection, done: connection.usage(self._handle, done))
        return used

    def kill(self) -> Termination:
        """Kills all processes in the box immediately and returns why it ended: `asked` unless another cause came first.

        Killing twice is fine.
        """
        with self._ending:
            if self._termination is None:
                try:
                    self._termination = self._boxes.asked(lambda connection, done: connection.end(self._handle, done))
                except SandboxError:
                    self._termination = Termination(Cause.DIED, BoxUsage())
                self._boxes.forget(self)
                os.close(self._requests)
                os.close(self._replies)
            return self._termination

    def give_way(self, others_first: bool) -> None:
        """Lowers (or restores) the box's CPU weight; best effort, without waiting."""
        with contextlib.suppress(InfrastructureError):
            reactor, connection = self._boxes.connected()
            reactor.call(lambda: connection.give_way(self._handle, others_first, lambda _problem: None))

    def _death(self) -> BoxLost:
        termination = self.kill()
        cause = Cause.DIED if termination.cause is Cause.ASKED else termination.cause
        return BoxLost(cause.value, f"the box ended: {cause.value}", termination.usage)


class ToolBoxes(ClosesOnExit):
    """Starter of sandboxes for our own programs; connects to a broker on first use. Safe for several threads."""

    def __init__(self, settings: RuntimeSettings, backend: BackendName = BackendName.NSJAIL) -> None:
        """Keeps the settings for boxes; connects only on first use. `settings` name a running broker, or configure a
        private one; either must know the programs. A private broker prepares only what these boxes need."""
        self.backend = backend
        backends = (backend,) if backend in settings.own.backends else settings.own.backends
        own = {"guests": False, "ready": 0, "backends": backends}
        self._settings = settings.model_copy(update={"own": settings.own.model_copy(update=own)})
        self._lock = threading.Lock()
        self._open: tuple[Reactor, BrokerConnection] | None = None
        self._boxes: set[ToolBox] = set()
        self._closed = False

    def box(
        self,
        program: str,
        *,
        memory_mib: int,
        pids: int = 64,
        cpus: float = 1.0,
        tmp_mib: int = 16,
        open_files: int = 256,
        seconds: float = START_SECONDS,
    ) -> ToolBox:
        """Starts a fresh sandbox and returns it once its program is ready. Raises RefusedError if the broker refuses,
        InfrastructureError if the start failed."""
        profile = Profile(
            backend=self.backend,
            mode="sandbox",
            program=program,
            memory_mib=memory_mib,
            process_memory_mib=memory_mib,
            pids=pids,
            cpus=cpus,
            tmp_mib=tmp_mib,
            work_mib=1,
            open_files=open_files,
            output_bytes=1 << 16,
        )
        handle: Handle = self.asked(
            lambda connection, done: connection.launch(profile, caller=program, priority=Priority.JOB, on_ready=done),
            seconds,
        )
        box = ToolBox(self, handle)
        with self._lock:
            self._boxes.add(box)
        return box

    def close(self) -> None:
        """Kills every box that was started, and a private broker. Closing twice is fine."""
        with self._lock:
            self._closed = True
            boxes, opened = list(self._boxes), self._open
        for box in boxes:
            box.kill()
        with self._lock:
            self._open = None
        if opened is not None:
            reactor, connection = opened
            connection.close()
            reactor.stop()

    def forget(self, box: ToolBox) -> None:
        with self._lock:
            self._boxes.discard(box)

    def asked(self, question: Question, seconds: float = END_SECONDS) -> Any:
        """Sends a request to the broker and waits for its answer. Raises an answer that is an error."""
        answer: Future[Any] = Future()
        reactor, connection = self.connected()
        tickets: list[Ticket | None] = []

        def settle(found: Any) -> None:
            if not answer.done():
                answer.set_result(found)

        def cancel() -> None:
            for ticket in filter(None, tickets):
                ticket.cancel()

        reactor.call(lambda: tickets.append(question(connection, settle)))
        try:
            found = answer.result(seconds)
        except TimeoutError:
            reactor.call(cancel)
            raise InfrastructureError(
                f"the broker gave no answer within {seconds:g} s", hint="Run `assay doctor` to see what works here."
            ) from None
        if isinstance(found, SandboxError):
            raise found
        return found

    def connected(self) -> tuple[Reactor, BrokerConnection]:
        """Returns the reactor and connection of the sandbox broker, connecting on first use. Raises InfrastructureError
        if these boxes are closed."""
        from runtime.sessions import BrokerConnection

        with self._lock:
            if self._open is None:
                if self._closed:
                    raise InfrastructureError("these boxes are closed")
                reactor = Reactor()
                self._open = reactor, BrokerConnection(reactor, self._settings, lambda: None)
            return self._open


def _wait(descriptor: int, event: int, deadline: float) -> bool:
    """True if the descriptor is ready before the deadline."""
    poll = select.poll()
    poll.register(descriptor, event)
    return bool(poll.poll(max(0.0, (deadline - time.monotonic()) * 1000)))
