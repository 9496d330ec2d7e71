"""Host end of one sandbox: requests out, replies in, a clock on every call. Called from the reactor only.

Invariants: a reply counts only if it repeats the nonce of a waiting call; anything else on the pipe means that the
guest cannot be trusted, and the whole sandbox is killed. Every call ends exactly once, with a `CallOutcome`. At most
`width` calls run; others wait here, by priority and round-robin, so that one heavy caller does not delay the rest. A
shared interpreter runs as many as keep it busy for some milliseconds. An idle sandbox of many sessions is throttled,
and woken by the next message.
"""

from __future__ import annotations

import os
import selectors
import time
from collections.abc import Callable
from typing import Literal

from runtime.broker_api import BrokerApi, Handle, Termination
from runtime.errors import SandboxError
from runtime.fair_queue import FairQueue
from runtime.guest import wire
from runtime.guest.wire import Op, ReplyKind
from runtime.profile import BackendName, BoxUsage
from runtime.reactor import Reactor, Timer
from runtime.sessions.outcomes import LOST_BY, CallOutcome, LossCause
from runtime.sessions.pacing import MEASURE_SECONDS, OwnTime, Pace
from runtime.sessions.session_queue import SessionRequest

KILL_SECONDS = 5.0
"""Timeout of the guest for ending one process, in seconds."""
TERMINATION_SECONDS = 5.0
"""Timeout of the broker for a sandbox's termination cause, in seconds."""
REPORT_BYTES = 1 << 14
READ_BYTES = 1 << 17
SHARED_WIDTH = 4
MAX_WIDTH = 16
AHEAD_SECONDS = 0.005
"""Work queued ahead in a shared interpreter, in seconds: it never waits for the host, and new calls are soon served."""
REST_SECONDS = 1.0
"""Idle time after which a sandbox of many sessions is throttled, in seconds: an idle gVisor uses some CPU."""
WARNED_SECONDS = 1.0
"""Own time for which a call with patience may continue after its guest was warned, in seconds."""
NONCES = 256
PACE_CALLS = 32


class Worker:
    """Host end of one sandbox. A `serial` guest answers calls in turn: a call's clock starts with its turn."""

    def __init__(
        self,
        reactor: Reactor,
        launcher: BrokerApi,
        handle: Handle,
        *,
        ended: Callable[[Worker], None],
        width: int = 1,
        reply_bytes: int = 0,
    ) -> None:
        """Takes over a sandbox received from the broker and watches its replies. `reply_bytes` is the longest content
        to be requested, besides call output."""
        self.id, self.profile, self.handle = handle.id, handle.profile, handle
        self.state: Literal["ready", "lost"] = "ready"
        self.termination: Termination | None = None
        """Termination, once known."""
        self.lost_by: LossCause | None = None
        self._serial = handle.profile.mode == "shared"
        self._patience = 2 * handle.profile.slice_seconds + 0.5
        """Time for which a shared interpreter may be silent before it is killed, in seconds."""
        self._pace = AHEAD_SECONDS
        """Recent average duration of a call there, in seconds."""
        self._reactor, self._launcher, self._ended, self._width = reactor, launcher, ended, width
        self._replies = wire.Replies(max(2 * handle.profile.output_bytes, reply_bytes) + REPORT_BYTES)
        self._turns: FairQueue[SessionRequest] = FairQueue()
        self._under_way: dict[bytes, SessionRequest] = {}
        self._unsent: list[bytes | memoryview] = []
        self._reading = False
        self._own_times: dict[SessionRequest, OwnTime] = {}
        """Own-time budgets of calls with patience that ran long enough to be measured."""
        self._clock: Timer | None = None
        self._clock_due = 0.0
        self._nonces = b""
        self._held = False
        """True while sending is suspended, because effects must stay out of a snapshot."""
        self._rests = self._spoken = False
        """True while throttled; true if something was sent since the last check."""
        self._rest_clock: Timer | None = None
        self._blamed: list[SessionRequest] = []
        """Calls waiting for the cause of the sandbox's end."""
        self._when_ended: list[Callable[[Termination], None]] = []
        reactor.watch(handle.replies, selectors.EVENT_READ, self._read)
        if handle.profile.mode != "sandbox":  # a separate sandbox may run code between calls
            self._rest_clock = reactor.after(REST_SECONDS, self._may_rest)

    def turn(self, request: SessionRequest) -> None:
        """Sends a call to the sandbox when its turn comes. On a lost sandbox it ends immediately, unblamed."""
        if self.state == "ready" and (self._turns or len(self._under_way) >= self._width):
            self._add(request)
        else:
            self.send(request)

    def send(self, request: SessionRequest) -> None:
        """Sends the sandbox a request now, out of turn, or after `release`. If it is lost, the call ends unblamed."""
        if self.state != "ready":
            request.done(CallOutcome(LossCause.DIED, b"", b"", 0.0, blamed=False))
            return
        if self._held:
            self._add(request)
            return
        if not self._nonces:
            self._nonces = os.urandom(wire.NONCE_BYTES * NONCES)
        nonce, self._nonces = self._nonces[: wire.NONCE_BYTES], self._nonces[wire.NONCE_BYTES :]
        if not self._serial or not self._under_way:
            self._start_clock(request)
        self._under_way[nonce] = request
        self._write(wire.pack_request(nonce, request.op, request.session, request.body))

    def _add(self, request: SessionRequest) -> None:
        request.entry = self._turns.add(request, caller=request.caller, priority=request.priority)

    def hold(self) -> bool:
        """Suspends sending to the sandbox until `release`; False without effect if a call runs or it is suspended."""
        if self._under_way or self._turns or self._held:
            return False
        self._held = True
        return True

    def release(self) -> None:
        """Resumes sending to the sandbox: sends the requests that were held, in turn."""
        self._held = False
        while self._turns and len(self._under_way) < self._width:
            self.send(self._turns.take())

    def notify(self, op: Op, session: int) -> None:
        """Sends DROP, KILL or WARN about a session to the sandbox; these have no reply of their own."""
        if self.state == "ready":
            self._write(wire.pack_request(wire.NO_NONCE, op, session))

    def withdraw(self, request: SessionRequest) -> None:
        """Discards a request to the sandbox: it is not sent, or its answer is not passed on."""
        request.done = lambda _outcome: None
        if request.entry is not None:
            self._turns.remove(request.entry)

    def stop(self) -> None:
        """Ends the sandbox's running calls as late, and then the sandbox."""
        if not self._under_way:
            self.lose(LossCause.TIMEOUT)
        for call in list(self._under_way.values()):
            if self.state == "ready" and not call.stopped:
                self._stop(call)

    def retire(self) -> None:
        """Kills the sandbox; its waiting calls end unblamed."""
        self.lose(LossCause.DIED, blame=False)

    def lose(self, why: LossCause, culprit: SessionRequest | None = None, *, blame: bool = True) -> None:
        """Kills the sandbox; every call in it ends.

        Without a culprit all running calls are blamed: they are answered once the broker has reported the cause, others
        immediately.
        """
        if self.state == "lost":
            if why is LossCause.BROKER and self.termination is None:  # lost with its broker, but noticed earlier
                self.lost_by = why
                self._known(why)
            return
        self.state, self.lost_by = "lost", why
        if self._rest_clock is not None:
            self._rest_clock.cancel()
        for descriptor in (self.handle.replies, self.handle.requests):
            self._reactor.watch(descriptor, 0, lambda: None)
        running, self._under_way = list(self._under_way.values()), {}
        waiting = [self._turns.take() for _ in range(len(self._turns))]
        if self._serial and running:
            culprit = running[0]
        self._blamed = [call for call in running if blame and (culprit is None or call is culprit)]
        innocent = [call for call in running if call not in self._blamed] + waiting
        self._set_clock(TERMINATION_SECONDS, lambda: self._known(why))
        self._ended(self)  # first: a retried call must not be sent here again
        for call in innocent:
            kind = LossCause.BROKER if why is LossCause.BROKER else LossCause.DIED
            call.done(CallOutcome(kind, b"", b"", 0.0, blamed=False))
        if why in (LossCause.TIMEOUT, LossCause.STARVED, LossCause.BROKER):
            self._known(why)
        self._launcher.end(self.handle, lambda termination: self._has_ended(termination, why))

    def when_ended(self, callback: Callable[[Termination], None]) -> None:
        """Calls back once nothing inside a lost sandbox runs any more."""
        if self.termination is None:
            self._when_ended.append(callback)
        else:
            callback(self.termination)

    def _has_ended(self, termination: Termination, why: LossCause) -> None:
        self.termination = termination
        self._known(LOST_BY.get(termination.cause, why))
        callbacks, self._when_ended = self._when_ended, []
        for callback in callbacks:
            callback(termination)

    def _known(self, why: LossCause) -> None:
        if self._clock is not None:
            self._clock.cancel()
        blamed, self._blamed = self._blamed, []
        now = time.monotonic()
        for call in blamed:  # a stopped call was late, whatever happened to its sandbox afterwards
            is_late = call.stopped and why is not LossCause.BROKER
            call.done(CallOutcome(LossCause.TIMEOUT if is_late else why, b"", b"", now - call.since))

    # replies

    def _read(self) -> None:
        if self.state != "ready":
            return
        try:
            data = os.read(self.handle.replies, READ_BYTES)
        except BlockingIOError:
            return
        if not data:
            self.lose(LossCause.DIED)
            return
        try:
            replies = self._replies.replies(data)
        except wire.FrameError:
            self.lose(LossCause.DIED)
            return
        self._reading = True  # batches sends into one write
        believed = all(self._take(reply) for reply in replies)
        self._reading = False
        if not believed:
            self.lose(LossCause.DIED)
        elif self.state == "ready" and self._unsent:
            self._flush()

    def _take(self, reply: wire.Reply) -> bool:
        """Handles the guest's reply; True if it was expected, and in turn. A lost sandbox's replies are ignored."""
        if self.state != "ready":
            return True
        call = self._under_way.get(reply.nonce)
        if call is None or reply.kind not in KINDS:
            return False
        if self._serial and next(iter(self._under_way)) != reply.nonce:
            return False
        if call.op is Op.RUN and len(reply.output) > self.profile.output_bytes:
            return False
        del self._under_way[reply.nonce]
        self._own_times.pop(call, None)
        seconds = time.monotonic() - call.since
        if call.stopped and self.profile.mode == "sandbox":  # late, whatever it reports, and its process is gone
            self.lose(LossCause.TIMEOUT, blame=False)
            call.done(CallOutcome(LossCause.TIMEOUT, reply.output, b"", seconds))
            return True
        if self._serial:
            self._pace += (seconds - self._pace) / PACE_CALLS
            self._width = max(SHARED_WIDTH, min(MAX_WIDTH, int(AHEAD_SECONDS / self._pace)))
            if self._under_way:
                self._start_clock(next(iter(self._under_way.values())))
        while self._turns and len(self._under_way) < self._width:
            self.send(self._turns.take())
        outcome = CallOutcome(KINDS[reply.kind], reply.output, reply.report, seconds)
        if call.stopped and outcome.kind is not ReplyKind.DIED:  # even on success: its names are dropped
            outcome = outcome._replace(kind=ReplyKind.KILLED, report=b"")
        if outcome.kind is ReplyKind.DIED and call.op is Op.RUN and not self._ended_by_itself(outcome):
            self._ask_why(call, outcome)
        else:
            call.done(outcome)
        return True

    def _ended_by_itself(self, outcome: CallOutcome) -> bool:
        """True if a call's process certainly ended by itself. Under gVisor an OOM-killed one looks like an exit."""
        return self.profile.backend is BackendName.NSJAIL and outcome.report == wire.EXITED

    def _ask_why(self, call: SessionRequest, outcome: CallOutcome) -> None:
        """Asks the broker if a call's process was OOM-killed, then answers the call; such a sandbox is discarded."""

        def answered(usage: BoxUsage | SandboxError) -> None:
            for_memory = isinstance(usage, BoxUsage) and usage.oom_kills > 0
            call.done(outcome._replace(kind=LossCause.MEMORY if for_memory else ReplyKind.DIED))
            if for_memory:
                self.retire()

        self._launcher.usage(self.handle, answered)

    # clocks

    def _start_clock(self, call: SessionRequest) -> None:
        call.since = time.monotonic()
        limit = min(call.limit, self._patience) if self._serial else call.limit
        if self._is_patient(call):
            limit = OwnTime.first_look(call.limit)
        self._due_in(call, limit)

    def _due_in(self, call: SessionRequest, seconds: float) -> None:
        """Schedules the next check if a call is overdue, at the latest after `seconds`."""
        call.deadline = time.monotonic() + seconds
        if self._clock is None or call.deadline < self._clock_due:
            self._set_clock(seconds, self._check_deadlines)

    def _set_clock(self, seconds: float, callback: Callable[[], None]) -> None:
        """Sets the sandbox's single timer for all calls to the earliest deadline."""
        if self._clock is not None:
            self._clock.cancel()
        self._clock_due = time.monotonic() + seconds
        self._clock = self._reactor.after(seconds, callback)

    def _check_deadlines(self) -> None:
        self._clock = None
        now = time.monotonic()
        calls = list(self._under_way.values())[: 1 if self._serial else None]
        for call in calls:
            if call.deadline <= now:
                self._overdue(call)
            if self.state != "ready":
                return
        if calls:
            self._set_clock(max(0.0, min(call.deadline for call in calls) - now), self._check_deadlines)

    def _overdue(self, call: SessionRequest) -> None:
        """Stops one overdue call; if that fails, the sandbox. A call with patience is measured first."""
        if call.stopped:
            self.lose(LossCause.TIMEOUT, call)
        elif self._is_patient(call):
            self._look_at(call)
        else:
            self._stop(call)

    def _stop(self, call: SessionRequest) -> None:
        """Ends an overdue call's process and waits for its output; a single-session sandbox ends after that."""
        if call.op is not Op.RUN or (self._serial and call.limit >= self._patience):
            self.lose(LossCause.TIMEOUT, call)
            return
        call.stopped = True
        self._own_times.pop(call, None)  # a pending measurement has no effect any more
        # a shared interpreter runs to the end of its slice, reports the output, and drops the names
        self.notify(Op.DROP if self._serial else Op.KILL, call.session)
        self._due_in(call, self._patience - call.limit if self._serial else KILL_SECONDS)

    def _is_patient(self, call: SessionRequest) -> bool:
        return call.patience > 1 and call.op is Op.RUN and self.profile.mode == "sandbox"

    def _look_at(self, call: SessionRequest) -> None:
        """Measures a call's own time, and ends it or sets its next deadline. Without an answer, wall clock counts."""
        own = self._own_times.setdefault(call, OwnTime(Pace(call.limit, call.limit * call.patience, self.profile.cpus)))
        now = time.monotonic()
        if own.is_asked and now - call.since >= own.pace.own:
            self._stop(call)
            return
        own.is_asked = True
        call.deadline = now + MEASURE_SECONDS

        def answered(usage: BoxUsage | SandboxError) -> None:
            if self.state != "ready" or self._own_times.get(call) is not own:
                return
            wall = time.monotonic() - call.since
            left = own.left(usage, wall)
            if left is None and not call.warned:
                call.warned = True
                self.notify(Op.WARN, call.session)
                own.extend(WARNED_SECONDS)
                left = own.left(usage, wall)
            if left is None and not own.is_used_up:
                self.lose(LossCause.STARVED, call)
                return
            if left is None:
                self._stop(call)
            else:
                self._due_in(call, left)

        self._launcher.usage(self.handle, answered, waits=True)

    # rest

    def _may_rest(self) -> None:
        self._rests = not (self._spoken or self._under_way)
        self._spoken = False
        if self._rests:
            self._launcher.rest(self.handle, True, lambda _problem: None)
        else:
            self._rest_clock = self._reactor.after(REST_SECONDS, self._may_rest)

    def _wake(self) -> None:
        """Restores an idle sandbox's CPUs without waiting: messages are answered once the broker has read this one."""
        self._rests = False
        self._launcher.rest(self.handle, False, lambda _problem: None)
        self._rest_clock = self._reactor.after(REST_SECONDS, self._may_rest)

    # requests

    def _write(self, frame: bytes) -> None:
        self._spoken = True
        if self._rests:
            self._wake()
        self._unsent.append(frame)
        if len(self._unsent) == 1 and not self._reading:
            self._flush()

    def _flush(self) -> None:
        data = self._unsent[0] if len(self._unsent) == 1 else b"".join(self._unsent)
        try:
            sent = os.write(self.handle.requests, data)
        except BlockingIOError:
            sent = 0
        except BrokenPipeError:
            self._reactor.call(lambda: self.lose(LossCause.DIED))
            return
        self._unsent = [] if sent == len(data) else [memoryview(data)[sent:]]
        if self._unsent:
            self._reactor.watch(self.handle.requests, selectors.EVENT_WRITE, self._may_write)

    def _may_write(self) -> None:
        if self.state == "ready":
            self._reactor.watch(self.handle.requests, 0, lambda: None)
            self._flush()


KINDS = {int(kind): kind for kind in ReplyKind}
