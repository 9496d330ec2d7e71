"""One session: its names, its history, and the tier that they have paid for. Lives on the reactor's thread.

A session starts among others in a shared interpreter and moves down when its code asks for more: the history is
repeated in the new place, each call has to end exactly as it did the first time, and only then the new call runs.
So a move can never change what a session has seen. What always holds: calls of one session run in order, each is
answered once, and a call that had to be killed leaves the session as it was before that call, or, in a sandbox of its
own, empty; its error says which.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from runtime.errors import BadRequestError, InfrastructureError, SandboxError
from runtime.guest.wire import FULL, Kind, Op
from runtime.sandbox import CallResult, CallStatus, Tier
from runtime.sessions.endings import SENTENCES, STATUS_OF, Past, fingerprint, told
from runtime.sessions.places import Places, Seat
from runtime.sessions.purity import Need, classify
from runtime.sessions.worker import Ending, Lost, Worker

ORDER = list(Tier)
RETRIES = 2
"""How often a call may lose its sandbox through the fault of others before it goes where there are fewer of them."""
EMPTY = "; the session starts again with no names and no files"
UNREPEATABLE = (
    "StateError: this code needs a sandbox of its own, but what the session computed before depends on a clock, on"
    " chance or on addresses and could not be repeated there; it starts again with no names, this call did not run"
)


@dataclass(slots=True)
class Call:
    source: str
    seconds: float
    future: Future[CallResult]
    need: Need
    losses: int = 0
    refuted: bool = False
    """The guest compiled what the host could not parse."""


class LiveSession:
    """The one implementation of `runtime.sandbox.Session`."""

    def __init__(
        self, number: int, places: Places, call_soon: Callable[[Callable[[], None]], None], tier: Tier
    ) -> None:
        self.id = f"session-{number}"
        self._number, self._places, self._call_soon = number, places, call_soon
        self._tier = tier
        self._queue: deque[Call] = deque()
        self._active: Call | None = None
        self._history: list[Past] = []
        self._home: Worker | None = None
        """The shared worker that has this session's names."""
        self._seat: Seat | None = None
        self._known = 0
        """How much of the history the present place has seen."""
        self._closed = False

    @property
    def tier(self) -> Tier:
        return self._tier

    def start(self, code: str, *, seconds: float | None = None) -> Future[CallResult]:
        limit = self._places.limits.call_seconds
        if seconds is not None and not seconds > 0:
            raise BadRequestError(f"a call cannot be limited to {seconds} seconds")
        if self._closed:
            raise BadRequestError(f"{self.id} is closed")
        future: Future[CallResult] = Future()
        call = Call(code, min(limit, seconds or limit), future, Need.MACHINE)
        self._call_soon(lambda: self._enqueue(call))
        return future

    def run(self, code: str, *, seconds: float | None = None) -> CallResult:
        return self.start(code, seconds=seconds).result()

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._call_soon(lambda: self.abandon("it was closed while the call waited"))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _enqueue(self, call: Call) -> None:
        if self._closed:
            if call.future.set_running_or_notify_cancel():
                call.future.set_exception(BadRequestError(f"{self.id} is closed"))
            return
        self._queue.append(call)
        if self._active is None:
            self._next()

    def abandon(self, why: str) -> None:
        """Ends the session from the reactor's thread: whatever waits is told why."""
        self._closed = True
        waiting = [call for call in self._queue if call.future.set_running_or_notify_cancel()]
        if self._active is not None:
            waiting.insert(0, self._active)
        self._active = None
        self._queue.clear()
        self._leave()
        for call in waiting:
            call.future.set_exception(BadRequestError(f"{self.id}: {why}"))
        self._places.gone(self._number)

    def _next(self) -> None:
        while self._queue:
            call = self._queue.popleft()
            if call.future.set_running_or_notify_cancel():
                self._active = call
                call.need = classify(call.source)
                self._go(call)
                return

    def _go(self, call: Call) -> None:
        """Sends the call to where it belongs, by way of its history when that place does not know the session."""
        broken = call.need is Need.BROKEN and not call.refuted
        if not broken:
            wanted = Tier.PROCESS if call.refuted else call.need.tier
            self._raise_to(wanted)
        if broken or self._tier is Tier.SHARED:
            self._places.shared(self._number, lambda place: self._in_shared(call, place))
        elif self._seat is not None and self._seat.worker.state == "ready":
            self._continue_seated(call)
        elif self._seat is not None and self._tier is Tier.SANDBOX:
            self._ended_between_calls(call)
        else:
            self._leave()
            self._places.seat(self._tier, self._number, lambda place: self._seated(call, place))

    def _raise_to(self, tier: Tier) -> None:
        if ORDER.index(tier) > ORDER.index(self._tier):
            self._leave()
            self._tier = tier

    # shared

    def _in_shared(self, call: Call, place: Worker | SandboxError) -> None:
        if call is not self._active:
            return
        if isinstance(place, SandboxError):
            self._fail(place)
            return
        body = _encode(call.source)
        limit = place.profile.slice_seconds * 2 + 0.5
        if call.need is Need.BROKEN and not call.refuted:
            place.send(Op.COMPILE, self._number, body, limit, lambda ending: self._compiled(call, place, ending))
            return
        if self._home is not place:
            self._home, self._known = place, 0
        if self._known < len(self._history):
            past = self._history[self._known]
            place.send(
                Op.RUN, self._number, _encode(past.source), limit, lambda e: self._replayed_shared(call, place, past, e)
            )
            return
        place.send(Op.RUN, self._number, body, limit, lambda ending: self._ran_shared(call, place, ending))

    def _replayed_shared(self, call: Call, place: Worker, past: Past, ending: Ending) -> None:
        if call is not self._active:
            return
        if fingerprint(ending) == past.ending:
            self._known += 1
            self._in_shared(call, place)
        else:
            self._move(call, ending, Tier.PROCESS)

    def _compiled(self, call: Call, place: Worker, ending: Ending) -> None:
        if call is not self._active:
            return
        if ending.kind is Kind.EXCEPTION:
            self._resolve(call, CallStatus.EXCEPTION, ending, place, remember=False)
        elif isinstance(ending.kind, Lost) and not ending.blamed:
            self._go_again(call)
        else:
            call.refuted = True
            self._go(call)

    def _ran_shared(self, call: Call, place: Worker, ending: Ending) -> None:
        if call is not self._active:
            return
        if ending.kind in (Kind.OK, Kind.EXCEPTION):
            status = CallStatus.OK if ending.kind is Kind.OK else CallStatus.EXCEPTION
            self._resolve(call, status, ending, place)
        elif ending.kind is Kind.OUTPUT:
            self._home = None
            self._resolve(call, CallStatus.OUTPUT, ending, place, remember=False)
        elif ending.seconds >= call.seconds and ending.kind in (Kind.SLICE, Lost.TIMEOUT):
            self._home = None
            self._resolve(call, CallStatus.TIMEOUT, ending, place, remember=False)
        else:
            self._move(call, ending, Tier.PROCESS)

    def _move(self, call: Call, ending: Ending, tier: Tier) -> None:
        """What pure code could not finish among others is run again in a place of its own: nothing of it was seen."""
        if isinstance(ending.kind, Lost) and not ending.blamed:
            self._go_again(call)
            return
        if self._home is not None and ending.kind is Kind.MEMORY and ending.report == FULL:
            self._home.retire()
        self._raise_to(tier)
        self._leave()
        self._go(call)

    def _go_again(self, call: Call) -> None:
        call.losses += 1
        self._home = None
        if call.losses > RETRIES:
            if self._tier is Tier.SANDBOX:
                self._fail(InfrastructureError("the call lost its sandbox again and again", hint="Run `assay doctor`."))
                return
            call.losses = 0
            self._raise_to(ORDER[ORDER.index(self._tier) + 1])
        self._go(call)

    # a process or a sandbox of its own

    def _seated(self, call: Call, place: Seat | SandboxError) -> None:
        if call is not self._active:
            if not isinstance(place, SandboxError):
                place.leave()
            return
        if isinstance(place, SandboxError):
            self._fail(place)
            return
        self._seat, self._known = place, 0
        self._continue_seated(call)

    def _continue_seated(self, call: Call) -> None:
        if self._known < len(self._history):
            source = self._history[self._known].source
            self._send_seated(call, source, self._places.limits.call_seconds, self._replayed)
            return
        if self._tier is Tier.SANDBOX:
            self._history.clear()
            self._known = 0
        self._send_seated(call, call.source, call.seconds, self._ran_seated)

    def _replayed(self, call: Call, ending: Ending) -> None:
        if fingerprint(ending) == self._history[self._known].ending:
            self._known += 1
            self._continue_seated(call)
        elif isinstance(ending.kind, Lost) and not ending.blamed:
            self._leave()
            self._go_again(call)
        else:
            assert self._seat is not None
            sandbox = self._seat.worker.id
            self._forget()
            result = CallResult(
                status=CallStatus.EXCEPTION,
                error=UNREPEATABLE,
                seconds=ending.seconds,
                tier=self._tier,
                sandbox=sandbox,
            )
            self._answer(call, result)

    def _ended_between_calls(self, call: Call) -> None:
        """A sandbox that ended while nothing was asked of it: by its own code, or for memory. The call did not run."""
        assert self._seat is not None
        worker = self._seat.worker
        self._forget()
        self._resolve(call, CallStatus.DIED, Ending(Lost.DIED, b"", b"", 0.0), worker, remember=False)

    def _send_seated(self, call: Call, source: str, limit: float, then: Callable[[Call, Ending], None]) -> None:
        seat = self._seat
        assert seat is not None

        def job(free: Callable[[], None]) -> None:
            if call is not self._active:
                free()
                return

            def done(ending: Ending) -> None:
                free()
                if call is self._active:
                    then(call, ending)

            seat.worker.send(Op.RUN, self._number, _encode(source), limit, done)

        self._places.in_turn(seat.worker, job)

    def _ran_seated(self, call: Call, ending: Ending) -> None:
        assert self._seat is not None
        worker = self._seat.worker
        if ending.kind in (Kind.OK, Kind.EXCEPTION):
            status = CallStatus.OK if ending.kind is Kind.OK else CallStatus.EXCEPTION
            self._resolve(call, status, ending, worker)
            return
        wants_more = ending.kind in (Kind.DENIED, Lost.MEMORY, Lost.DIED) and ending.blamed
        if self._tier is Tier.PROCESS and wants_more:
            self._move(call, ending, Tier.SANDBOX)
            return
        if self._tier is Tier.SANDBOX:
            self._forget()
        elif isinstance(ending.kind, Lost) and not ending.blamed:
            self._leave()
            self._go_again(call)
            return
        self._leave()
        self._resolve(call, STATUS_OF.get(ending.kind, CallStatus.DIED), ending, worker, remember=False)

    # the end of a call

    def _leave(self) -> None:
        if self._seat is not None:
            self._seat.leave()
            self._seat = None
        if self._home is not None:
            self._home.tell(Op.DROP, self._number)
            self._home = None
        self._known = 0

    def _forget(self) -> None:
        self._leave()
        self._history.clear()

    def _resolve(
        self, call: Call, status: CallStatus, ending: Ending, worker: Worker, *, remember: bool = True
    ) -> None:
        error, trace = told(ending) if status is CallStatus.EXCEPTION else ("", "")
        if status in SENTENCES:
            limits = self._places.limits
            error = SENTENCES[status].format(
                seconds=call.seconds, memory=limits.memory_mib, output=limits.output_bytes
            ) + (EMPTY if self._tier is Tier.SANDBOX else "")
        if remember and self._tier is not Tier.SANDBOX:
            self._history.append(Past(call.source, fingerprint(ending)))
            self._known = len(self._history)
        result = CallResult(
            status=status,
            output=ending.output.decode(errors="replace"),
            error=error,
            traceback=trace,
            seconds=ending.seconds,
            tier={"shared": Tier.SHARED, "process": Tier.PROCESS, "sandbox": Tier.SANDBOX}[worker.profile.mode],
            sandbox=worker.id,
        )
        self._answer(call, result)

    def _answer(self, call: Call, result: CallResult) -> None:
        self._active = None
        self._places.count(result)
        call.future.set_result(result)
        if self._active is None:
            self._next()

    def _fail(self, error: SandboxError) -> None:
        call, self._active = self._active, None
        if call is not None:
            call.future.set_exception(error)
        self._next()


def _encode(source: str) -> bytes:
    return source.encode("utf-8", "surrogatepass")
