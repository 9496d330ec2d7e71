"""Boxes with a program of ours in them, asked over their pipes: for tools that read what a model wrote.

What always holds: a box is held by one thread at a time; who waits for an answer waits no longer than he said; `kill`
ends everything inside and tells why it ended, as the kernel and the broker know it. What comes out of a box is hostile:
it is JSON of a bounded size, and whoever asked has to look at it before he believes it.
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
"""For a broker of our own to begin, and for the program to be warm."""
END_SECONDS = 15.0
GIVES_WAY_SECONDS = 0.2
"""Without an answer, after which a box gives way to others."""
GIVES_WAY_UNTIL = 10.0
"""Without an answer, after which it has its share again: what is hard and right must come to its end on a machine that
is busy for long, and a clock that is longer than this was given by somebody who means it."""
LAST_SECONDS = 0.5
"""Of the time for an answer, in which it has its share, too: what is late has to be ended in time."""
Question = Callable[["BrokerConnection", Callable[[Any], None]], Ticket | None]
"""Asks the broker something, and says what is to be called with the answer."""


class BoxLost(Exception):
    """The box gave no answer. `cause`: `timeout`, or how it ended: `memory`, `cpu`, `expired`, `died`, or `start` when
    there never was one."""

    def __init__(self, cause: str, message: str, usage: BoxUsage | None = None) -> None:
        super().__init__(message)
        self.cause = cause
        self.usage = usage if usage is not None else BoxUsage()


class ToolBox:
    """One running program. Not for several threads at once, but for `kill`."""

    def __init__(self, boxes: ToolBoxes, handle: Handle) -> None:
        self.id = handle.id
        self.isolation: Literal["nsjail", "gvisor"] = handle.profile.backend.value
        """As a verdict names it."""
        self._boxes, self._handle = boxes, handle
        # of our own, because the others are closed on another thread as soon as the box is ended
        self._requests, self._replies = os.dup(handle.requests), os.dup(handle.replies)
        self._frames = Frames()
        self._ending = threading.Lock()
        self._termination: Termination | None = None

    def ask(self, message: dict[str, Any], seconds: float) -> dict[str, Any]:
        """Sends one message and waits for one. Raises BoxLost; then the box has to be killed. What takes long gives way
        to other boxes for a while."""
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
        """`deadline` is of time.monotonic(). Raises BoxLost."""
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
        """The next message. Raises BoxLost when none comes in time, or none can come any more."""
        while True:
            try:
                message = self._frames.next()
            except FrameError as error:
                raise BoxLost("died", str(error)) from error
            if isinstance(message, dict):
                return message
            if message is not None:
                raise BoxLost("died", "an answer that is no object")
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
        """Requests and replies, non-blocking, for those who wait for several boxes at once."""
        return self._requests, self._replies

    def usage(self) -> BoxUsage:
        """What it has used so far, as the kernel counts it. Raises SandboxError."""

        used: BoxUsage = self._boxes.asked(lambda connection, done: connection.usage(self._handle, done))
        return used

    def kill(self) -> Termination:
        """Ends everything inside, at once, and says why it ended: `asked` unless something else was first.

        Killing twice is fine."""
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
        """Whether it computes mostly when no other box does. Nobody waits for that, and where it cannot be had, others
        have to bear it."""
        with contextlib.suppress(InfrastructureError):
            reactor, connection = self._boxes.connected()
            reactor.call(lambda: connection.give_way(self._handle, others_first, lambda _problem: None))

    def _death(self) -> BoxLost:
        termination = self.kill()
        cause = Cause.DIED if termination.cause is Cause.ASKED else termination.cause
        return BoxLost(cause.value, f"the box ended: {cause.value}", termination.usage)


class ToolBoxes(ClosesOnExit):
    """Safe for several threads. Nothing is started before the first box is asked for."""

    def __init__(self, settings: RuntimeSettings, backend: BackendName = BackendName.NSJAIL) -> None:
        """`settings` name a running broker, or what one of our own is told; either has to know the programs. One of our
        own makes nothing ready but what these boxes need."""
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
        """A fresh box whose program is warm. Raises RefusedError where there can be none, InfrastructureError when this
        one did not come to be."""
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
        """Kills every box, and ends a broker of our own. Closing twice is fine."""
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
        """Waits for what the broker answers. Raises what it answers, if that is an error."""
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
                f"the broker gave no answer within {seconds:g} s", hint="`assay doctor` says what works here."
            ) from None
        if isinstance(found, SandboxError):
            raise found
        return found

    def connected(self) -> tuple[Reactor, BrokerConnection]:
        """Where the broker is asked. Raises InfrastructureError when these boxes are closed."""
        from runtime.sessions import BrokerConnection

        with self._lock:
            if self._open is None:
                if self._closed:
                    raise InfrastructureError("these boxes are closed")
                reactor = Reactor()
                self._open = reactor, BrokerConnection(reactor, self._settings, lambda: None)
            return self._open


def _wait(descriptor: int, event: int, deadline: float) -> bool:
    """Whether something can be done there now."""
    poll = select.poll()
    poll.register(descriptor, event)
    return bool(poll.poll(max(0.0, (deadline - time.monotonic()) * 1000)))
