"""Is the host's end of one sandbox: requests out, replies in, a clock on every call. Called from the reactor only.

What always holds: a reply counts only when it repeats the nonce of a call that is waiting for one; anything else on the
pipe means that the guest is not to be believed, and the whole sandbox is killed. Every call ends exactly once, with an
`CallOutcome`. At most `width` calls are under way; the others wait here, by priority and in turns, so that one caller
who sends much does not delay the rest. A shared interpreter has as many under way as keep it busy for some
milliseconds. A sandbox of many sessions in which none has called for a while rests, and is woken by the next message.
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
"""How long the guest may take to end one process."""
TERMINATION_SECONDS = 5.0
"""How long the broker may take to say why a sandbox ended."""
REPORT_BYTES = 1 << 14
READ_BYTES = 1 << 17
SHARED_WIDTH = 4
MAX_WIDTH = 16
AHEAD_SECONDS = 0.005
"""How long a shared interpreter is kept busy ahead: it never waits for the host, and who comes first is soon served."""
REST_SECONDS = 1.0
"""Without a call, after which a sandbox of many sessions rests: gVisor takes some hundredths of a core for doing
nothing."""
WARNED_SECONDS = 1.0
"""Of its own time for a call with patience to end once its guest was told that it is over."""
NONCES = 256
PACE_CALLS = 32


class Worker:
    """Is the host's end of one sandbox. `serial` when it answers calls one after another: then a call's clock starts
    when its turn comes."""

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
        """Watches it from now on. `reply_bytes`: the longest content that will be asked for, beside what calls
        print."""
        self.id, self.profile, self.handle = handle.id, handle.profile, handle
        self.state: Literal["ready", "lost"] = "ready"
        self.termination: Termination | None = None
        """How it ended, once that is known."""
        self.lost_by: LossCause | None = None
        self._serial = handle.profile.mode == "shared"
        self._patience = 2 * handle.profile.slice_seconds + 0.5
        """How long a shared interpreter may not answer before it is killed."""
        self._pace = AHEAD_SECONDS
        """Seconds that a call takes there, of late."""
        self._reactor, self._launcher, self._ended, self._width = reactor, launcher, ended, width
        self._replies = wire.Replies(max(2 * handle.profile.output_bytes, reply_bytes) + REPORT_BYTES)
        self._turns: FairQueue[SessionRequest] = FairQueue()
        self._under_way: dict[bytes, SessionRequest] = {}
        self._unsent: list[bytes | memoryview] = []
        self._reading = False
        self._own_times: dict[SessionRequest, OwnTime] = {}
        """Of calls with patience that took long enough to be looked at."""
        self._clock: Timer | None = None
        self._clock_due = 0.0
        self._nonces = b""
        self._held = False
        """Nothing is sent, because what would come of it is not to be in a snapshot."""
        self._rests = self._spoken = False
        """It is resting; something was sent since that was last looked at."""
        self._rest_clock: Timer | None = None
        self._blamed: list[SessionRequest] = []
        """Calls that wait for why the sandbox ended."""
        self._when_ended: list[Callable[[Termination], None]] = []
        reactor.watch(handle.replies, selectors.EVENT_READ, self._read)
        if handle.profile.mode != "sandbox":  # of one that is somebody's own nobody knows what runs between calls
            self._rest_clock = reactor.after(REST_SECONDS, self._may_rest)

    def turn(self, request: SessionRequest) -> None:
        """Sends a call when its turn comes. On a lost worker it ends at once, unblamed."""
        if self.state == "ready" and (self._turns or len(self._under_way) >= self._width):
            self._add(request)
        else:
            self.send(request)

    def send(self, request: SessionRequest) -> None:
        """Sends it now, out of turn, or once it is no more held. On a lost worker it ends at once, unblamed."""
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
        """Sends nothing more until `release`; False, and nothing is held, when a call is under way or held already."""
        if self._under_way or self._turns or self._held:
            return False
        self._held = True
        return True

    def release(self) -> None:
        """Sends what was held meanwhile, in turn."""
        self._held = False
        while self._turns and len(self._under_way) < self._width:
            self.send(self._turns.take())

    def notify(self, op: Op, session: int) -> None:
        """Sends DROP, KILL or WARN: nothing is answered for itself."""
        if self.state == "ready":
            self._write(wire.pack_request(wire.NO_NONCE, op, session))

    def withdraw(self, request: SessionRequest) -> None:
        """Nobody waits for it any more: it is not sent, or its answer is not passed on."""
        request.done = lambda _outcome: None
        if request.entry is not None:
            self._turns.remove(request.entry)

    def stop(self) -> None:
        """Ends what is under way, which is late, and the sandbox after it."""
        if not self._under_way:
            self.lose(LossCause.TIMEOUT)
        for call in list(self._under_way.values()):
            if self.state == "ready" and not call.stopped:
                self._stop(call)

    def retire(self) -> None:
        """Kills the sandbox through no fault of the calls that wait in it."""
        self.lose(LossCause.DIED, blame=False)

    def lose(self, why: LossCause, culprit: SessionRequest | None = None, *, blame: bool = True) -> None:
        """Kills the sandbox; every call in it ends. Without a culprit, all that were running are to blame: they are
        answered when the broker has said why it ended, the others at once."""
        if self.state == "lost":
            if why is LossCause.BROKER and self.termination is None:  # it went with its broker, and that was seen first
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
        self._ended(self)  # first: a call that goes again at once must not be sent here again
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
        for call in blamed:  # one that was stopped was late, whatever its sandbox came to before it said so
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
        self._reading = True  # what is sent meanwhile goes out in one write
        believed = all(self._take(reply) for reply in replies)
        self._reading = False
        if not believed:
            self.lose(LossCause.DIED)
        elif self.state == "ready" and self._unsent:
            self._flush()

    def _take(self, reply: wire.Reply) -> bool:
        """Says whether the reply was one that somebody waits for, and in turn; of a lost sandbox nobody reads any
        more."""
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
        if call.stopped and self.profile.mode == "sandbox":  # whatever it says: it was late, and its process is no more
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
        if call.stopped and outcome.kind is not ReplyKind.DIED:  # also one that worked: its names are not kept
            outcome = outcome._replace(kind=ReplyKind.KILLED, report=b"")
        if outcome.kind is ReplyKind.DIED and call.op is Op.RUN and not self._ended_by_itself(outcome):
            self._ask_why(call, outcome)
        else:
            call.done(outcome)
        return True

    def _ended_by_itself(self, outcome: CallOutcome) -> bool:
        """Says whether a process is known not to have been killed. In gVisor one whose memory the host's kernel took
        away looks as if it had ended by itself."""
        return self.profile.backend is BackendName.NSJAIL and outcome.report == wire.EXITED

    def _ask_why(self, call: SessionRequest, outcome: CallOutcome) -> None:
        """A process that died may have been killed for memory: only the host knows. Such a sandbox is not kept."""

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
        """Has it looked at then, at the latest."""
        call.deadline = time.monotonic() + seconds
        if self._clock is None or call.deadline < self._clock_due:
            self._set_clock(seconds, self._check_deadlines)

    def _set_clock(self, seconds: float, callback: Callable[[], None]) -> None:
        """Sets the one timer for all calls: for the first that could be late."""
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
        """Stops one call alone; when that does not work, the sandbox. One with patience is looked at first."""
        if call.stopped:
            self.lose(LossCause.TIMEOUT, call)
        elif self._is_patient(call):
            self._look_at(call)
        else:
            self._stop(call)

    def _stop(self, call: SessionRequest) -> None:
        """Has its process ended, and is told what it had printed; a sandbox of one session is ended after that."""
        if call.op is not Op.RUN or (self._serial and call.limit >= self._patience):
            self.lose(LossCause.TIMEOUT, call)
            return
        call.stopped = True
        self._own_times.pop(call, None)  # a look that is still under way changes nothing any more
        # a shared interpreter goes on to the end of its slice, says what was printed, and forgets the names
        self.notify(Op.DROP if self._serial else Op.KILL, call.session)
        self._due_in(call, self._patience - call.limit if self._serial else KILL_SECONDS)

    def _is_patient(self, call: SessionRequest) -> bool:
        return call.patience > 1 and call.op is Op.RUN and self.profile.mode == "sandbox"

    def _look_at(self, call: SessionRequest) -> None:
        """Finds out what the call has used of its own time, and ends it or sets its next deadline. Where the broker
        does not say it in time, all wall clock counts."""
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
        """Nobody waits for it: what is sent beside it is answered as soon as the broker has read this."""
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
