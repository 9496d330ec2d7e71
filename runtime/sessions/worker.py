"""The host's end of one sandbox: requests out, replies in, and a clock on every call. Lives on the reactor's thread.

What always holds: a reply counts only when it repeats the nonce of a call that is waiting for one; anything else on the
pipe means that the guest is not to be believed, and the whole sandbox is killed. Every call ends exactly once, with an
`Ending`; what the host measured goes before what the guest says.
"""

from __future__ import annotations

import logging
import os
import selectors
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from enum import Enum
from typing import Literal, NamedTuple

from runtime.backends.bundle import Profile
from runtime.backends.gvisor import Box, GVisorBackend
from runtime.errors import InfrastructureError, SandboxError
from runtime.guest import wire
from runtime.guest.wire import Kind, Op
from runtime.reactor import Reactor, Timer

log = logging.getLogger(__name__)
START_SECONDS = 30.0
KILL_SECONDS = 1.0
REPORT_BYTES = 1 << 14


class Lost(Enum):
    """Why a whole sandbox ended under its calls."""

    TIMEOUT = "timeout"
    MEMORY = "memory"
    DIED = "died"


class Ending(NamedTuple):
    """How one call ended: what the guest said of it, or why it could not say anything."""

    kind: Kind | Lost
    output: bytes
    report: bytes
    seconds: float
    blamed: bool = True
    """False for a call that was only waiting its turn in a sandbox that was lost."""


Done = Callable[[Ending], None]


@dataclass(slots=True)
class Waiting:
    """A call that was sent and not yet answered."""

    op: Op
    session: int
    limit: float
    done: Done
    since: float
    timer: Timer | None = None


class Worker:
    """One sandbox. `serial` when it answers calls one after another: then a call's clock starts when its turn comes."""

    def __init__(
        self,
        reactor: Reactor,
        backend: GVisorBackend,
        profile: Profile,
        *,
        ended: Callable[[Worker], None],
        reply_bytes: int = 0,
    ) -> None:
        """`reply_bytes`: the longest content that will be asked for, beside what calls print."""
        self.profile = profile
        self.id = ""
        self.state: Literal["starting", "ready", "lost"] = "starting"
        self.problem: SandboxError | None = None
        """Why it never became ready."""
        self._serial = profile.mode == "shared"
        self._reactor, self._backend, self._ended = reactor, backend, ended
        self._box: Box | None = None
        self._removal: Future[None] | None = None
        self._replies = wire.Replies(max(profile.output_bytes, reply_bytes) + REPORT_BYTES)
        self._waiting: dict[bytes, Waiting] = {}
        self._unsent: deque[memoryview] = deque()
        self._on_ready: list[Callable[[], None]] = []
        self._start_timer = reactor.after(START_SECONDS, self._never_ready)
        backend.launch(profile).add_done_callback(lambda future: reactor.call(lambda: self._launched(future)))

    def when_settled(self, callback: Callable[[], None]) -> None:
        """Calls back once the worker is ready or lost; at once when it is already."""
        if self.state == "starting":
            self._on_ready.append(callback)
        else:
            callback()

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    def send(self, op: Op, session: int, body: bytes, limit: float, done: Done) -> None:
        """Sends one call; `limit` in seconds. On a lost worker it ends at once, unblamed."""
        if self.state != "ready":
            done(Ending(Lost.DIED, b"", b"", 0.0, blamed=False))
            return
        nonce = os.urandom(wire.NONCE_BYTES)
        call = Waiting(op, session, limit, done, time.monotonic())
        first = not self._waiting
        self._waiting[nonce] = call
        if first or not self._serial:
            self._start_clock(call)
        self._write(wire.pack_request(nonce, op, session, body))

    def tell(self, op: Op, session: int) -> None:
        """DROP or KILL: nothing is answered for itself."""
        if self.state == "ready":
            self._write(wire.pack_request(wire.NO_NONCE, op, session))

    def retire(self) -> None:
        """Kills the sandbox through no fault of the calls that wait in it."""
        self.lose(Lost.DIED, blame=False)

    def lose(self, why: Lost, culprit: Waiting | None = None, *, blame: bool = True) -> None:
        """Kills the sandbox; every call in it ends now. Without a culprit, all that were running are to blame."""
        if self.state == "lost":
            return
        was_ready, self.state = self.state == "ready", "lost"
        self._start_timer.cancel()
        calls, self._waiting = list(self._waiting.values()), {}
        if self._box is not None:
            if was_ready and self._box.ran_out_of_memory():
                why = Lost.MEMORY
            if not was_ready and self.problem is None:
                self.problem = InfrastructureError(
                    f"sandbox {self.id} did not start: {self._box.complaint() or why.value}",
                    hint="Run `assay doctor`; it shows what runsc and the kernel can do here.",
                )
            self._reactor.watch(self._box.replies, 0, _nothing)
            self._reactor.watch(self._box.requests, 0, _nothing)
            self._remove(self._box)
        self._ended(self)  # first: a call that goes again at once must not be sent here again
        now = time.monotonic()
        if self._serial and calls:
            culprit = calls[0]
        for call in calls:
            if call.timer is not None:
                call.timer.cancel()
            blamed = blame and (culprit is None or call is culprit)
            call.done(Ending(why, b"", b"", now - call.since if blamed else 0.0, blamed))
        self._settle()

    def when_removed(self, callback: Callable[[], None]) -> None:
        """Calls back once nothing of a lost sandbox is left on the host."""
        if self._removal is not None:
            self._removal.add_done_callback(lambda _: callback())
        else:
            callback()

    def _remove(self, box: Box) -> None:
        self._removal = self._backend.remove(box)
        self._removal.add_done_callback(_note_failure)

    def _launched(self, future: Future[Box]) -> None:
        error = future.exception()
        if error is not None:
            if not isinstance(error, SandboxError):
                error = InfrastructureError(f"a sandbox could not be started: {error!r}")
            self.problem = error
            self.lose(Lost.DIED)
            return
        box = self._box = future.result()
        self.id = box.id
        if self.state == "lost":
            self._remove(box)
            return
        self._reactor.watch(box.replies, selectors.EVENT_READ, self._read)

    def _never_ready(self) -> None:
        self.lose(Lost.TIMEOUT)

    def _settle(self) -> None:
        callbacks, self._on_ready = self._on_ready, []
        for callback in callbacks:
            callback()

    def _read(self) -> None:
        assert self._box is not None
        try:
            data = os.read(self._box.replies, 1 << 17)
        except BlockingIOError:
            return
        if not data:
            self.lose(Lost.DIED)
            return
        try:
            replies = self._replies.feed(data)
        except wire.BrokenWireError:
            self.lose(Lost.DIED)
            return
        for reply in replies:
            if self.state == "starting" and reply.nonce == wire.NO_NONCE and reply.kind == Kind.READY:
                self.state = "ready"
                self._start_timer.cancel()
                self._settle()
            elif not self._take(reply):
                self.lose(Lost.DIED)
                return

    def _take(self, reply: wire.Reply) -> bool:
        """Whether the reply was one that somebody waits for, and in turn."""
        call = self._waiting.get(reply.nonce)
        if call is None or reply.kind not in Kind.__members__.values():
            return False
        if self._serial and next(iter(self._waiting)) != reply.nonce:
            return False
        if call.op is Op.RUN and len(reply.output) > self.profile.output_bytes:
            return False
        assert self._box is not None
        if reply.kind == Kind.DIED and self._box.ran_out_of_memory():
            self.lose(Lost.MEMORY, call)
            return True
        del self._waiting[reply.nonce]
        if call.timer is not None:
            call.timer.cancel()
        seconds = time.monotonic() - call.since
        if self._serial and self._waiting:
            self._start_clock(next(iter(self._waiting.values())))
        call.done(Ending(Kind(reply.kind), reply.output, reply.report, seconds))
        return True

    def _start_clock(self, call: Waiting) -> None:
        call.since = time.monotonic()
        call.timer = self._reactor.after(call.limit, lambda: self._overdue(call))

    def _overdue(self, call: Waiting) -> None:
        """In a sandbox of many, one process can be killed alone; when that does not work, the sandbox is."""
        if self.profile.mode == "process" and call.op is Op.RUN:
            self.tell(Op.KILL, call.session)
            call.timer = self._reactor.after(KILL_SECONDS, lambda: self.lose(Lost.TIMEOUT, call))
        else:
            self.lose(Lost.TIMEOUT)

    def _write(self, frame: bytes) -> None:
        self._unsent.append(memoryview(frame))
        if len(self._unsent) == 1:
            self._flush()

    def _flush(self) -> None:
        assert self._box is not None
        while self._unsent:
            try:
                sent = os.write(self._box.requests, self._unsent[0])
            except BlockingIOError:
                self._reactor.watch(self._box.requests, selectors.EVENT_WRITE, self._flush)
                return
            except BrokenPipeError:
                self._reactor.call(lambda: self.lose(Lost.DIED))
                return
            if sent == len(self._unsent[0]):
                self._unsent.popleft()
            else:
                self._unsent[0] = self._unsent[0][sent:]
        self._reactor.watch(self._box.requests, 0, _nothing)


def _nothing() -> None:
    """In place of a callback that will not be called."""


def _note_failure(future: Future[None]) -> None:
    error = future.exception()
    if error is not None:
        log.error("a sandbox could not be removed: %s", error)
