"""Life cycle of the broker's sandboxes: starting, ready, held, ending.

Invariants: a box is ready only after its guest has answered, and is throttled while ready, or while its holder says so;
one connection holds it, once, and afterwards it only ends; a ready box that writes unasked is ended immediately. The
profile's CPU time and life count from readiness and hand-over and are enforced here, on the host's clock, within
`CLOCK_SECONDS` plus the kernel's delay. The cause of an end comes from the host: groups, clock, process.

Broker's only exchange with a guest: readiness, liveness after a restore, new random numbers.

Invariants: only a guest that answered with its nonce (a fresh start: with its initial READY frame) and not one byte
more is handed over. One that says anything else is given up, and so is a silent one that neither computes nor waits for
a CPU: a busy machine makes a start slow, not wrong.
"""

from __future__ import annotations

import itertools
import logging
import os
import select
import selectors
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from runtime.backends.backend import Backend
from runtime.backends.process_box import ProcessBox, SlowTimer
from runtime.broker.base_images import StartSource
from runtime.broker_api import Termination
from runtime.errors import InfrastructureError, SandboxError, StartError
from runtime.guest import wire
from runtime.guest.wire import Op, ReplyKind
from runtime.profile import BoxUsage, Cause, Profile
from runtime.reactor import Reactor

SEEDS = 32
REPLY_BYTES = 1 << 12
HINT = "If this persists, run `assay doctor`."


class Handshake:
    """Exchange of one message with a sandbox that nobody holds yet. Calls back once, with an error or None, and then
    stops watching the descriptors."""

    def __init__(
        self,
        reactor: Reactor,
        box: ProcessBox,
        op: Op | None,
        seconds: float,
        done: Callable[[SandboxError | None], None],
    ) -> None:
        """Starts to exchange one message with a sandbox that nobody holds yet. `op` is PING, RESEED, or None for a
        guest that was just started and speaks first.

        RESEED sends 32 bytes of os.urandom, drawn here on the host, for this one sandbox. The guest seeds the global
        generators of `random` and `numpy.random` with them. Out of reach are generators created by user code, values
        drawn, generated or hashed before the snapshot (tokens, keys, dictionary order), and the memory layout; the
        guest kernel's random numbers (os.urandom) come from the host at each read and need no seed.
        """
        self._reactor, self._box, self._done = reactor, box, done
        self._nonce = wire.NO_NONCE if op is None else os.urandom(wire.NONCE_BYTES)
        self._replies = wire.Replies(REPLY_BYTES)
        self._received = 0
        self._timer = SlowTimer(reactor, box, seconds, self._end)
        reactor.watch(box.replies, selectors.EVENT_READ, self._receive)
        if op is not None:
            body = os.urandom(SEEDS) if op is Op.RESEED else b""
            try:
                os.write(box.requests, wire.pack_request(self._nonce, op, 0, body))  # it fits in any empty pipe
            except OSError as error:
                problem = f"cannot send a request: {error}"
                reactor.call(lambda: self._end(problem))

    def give_up(self) -> None:
        """Ends the exchange with the error that the broker ended the sandbox, unless the callback has run."""
        self._end("ended by the broker")

    def _receive(self) -> None:
        if self._timer.over:
            return
        try:
            data = os.read(self._box.replies, 1 << 14)
            self._received += len(data)
            replies = self._replies.replies(data)
        except BlockingIOError:
            return
        except (OSError, wire.FrameError) as error:
            self._end(f"invalid answer: {error}")
            return
        if not data:
            self._end("ended immediately")
        elif replies:
            self._end("" if self._received == wire.REPLY.size and self._is_right(replies[0]) else "invalid answer")

    def _is_right(self, reply: wire.Reply) -> bool:
        return reply.nonce == self._nonce and reply.kind == ReplyKind.READY

    def _end(self, problem: str) -> None:
        if self._timer.over:
            return
        self._timer.cancel()
        self._reactor.watch(self._box.replies, 0, self._receive)
        if not problem:
            self._done(None)
            return
        complaint = self._box.complaint()
        reason = f"{problem}; its output: {complaint!r}" if complaint else problem
        text = f"sandbox {self._box.id} did not become ready: {reason}"
        self._done(StartError(text, hint=HINT))


log = logging.getLogger(__name__)
CLOCK_SECONDS = 0.5
SLICES = 5
"""Number of slices in which the clock visits the boxes: reading the groups of many takes a while."""
START_SECONDS, RESEED_SECONDS = 30.0, 5.0
"""Time for which a guest may be stuck before it answers, in seconds; a slow one gets more."""


class State(StrEnum):
    STARTING = "starting"
    READY = "ready"
    HELD = "held"
    ENDING = "ending"


@dataclass(eq=False)
class Live:
    """State of a sandbox in the broker, from its request to its end."""

    number: int
    key: str
    """Key of its golden image or snapshot; boxes of one key are interchangeable."""
    profile: Profile
    backend: Backend
    parent: str
    """Snapshot from which it was restored, or empty."""
    since: float
    state: State = State.STARTING
    box: ProcessBox | None = None
    holder: int = 0
    """Number of the holding connection; 0 for none."""
    pid: int = 0
    """Process id of the holder."""
    caller: str = ""
    held_since: float = 0.0
    spent: BoxUsage = field(default_factory=BoxUsage)
    """Usage when it became ready: the cost of its start, not of its holder's work."""
    termination: Termination | None = None
    cause: Cause | None = None
    """Cause for which it is being ended; the first one counts."""
    when_ended: list[Callable[[Termination], None]] = field(default_factory=list)
    freezing: bool = False
    """True while a snapshot of it is being taken."""
    handshake: Handshake | None = None

    @property
    def id(self) -> str:
        return self.box.id if self.box is not None else f"start-{self.number}"


class BrokerBoxes:
    """Starts, holds and ends all sandboxes of a broker. `changed` is called whenever one has ended."""

    def __init__(
        self, reactor: Reactor, changed: Callable[[], None], ready_lost: Callable[[Live], None], *, freezes: int
    ) -> None:
        """Creates the set of a broker's boxes, empty. `ready_lost` gets a ready box that wrote or ended; `freezes`
        limits concurrent checkpoints, others wait."""
        self._reactor, self._changed, self._ready_lost = reactor, changed, ready_lost
        self._numbers = itertools.count(1)
        self.alive: dict[int, Live] = {}
        """All boxes that may have a process, by number."""
        self._turn = 0
        self._freezes = freezes
        self._to_freeze: deque[Callable[[], None]] = deque()
        self._clock = reactor.after(CLOCK_SECONDS / SLICES, self._tick)

    def start(
        self, source: StartSource, image: Path | None, op: Op | None, done: Callable[[Live | SandboxError], None]
    ) -> None:
        """Starts a box from an image, or without one; calls back once, with the ready box or an error."""
        parent = source.snapshot.key if source.snapshot is not None else ""
        live = Live(next(self._numbers), source.key, source.profile, source.backend, parent, time.monotonic())
        self.alive[live.number] = live

        def on_ready(box: ProcessBox | SandboxError) -> None:
            if isinstance(box, SandboxError):
                self._forget(live, BoxUsage())
                done(box)
                return
            live.box = box
            if live.state is State.ENDING:
                self._kill(live)
                done(StartError(f"sandbox {box.id} was ended before it was ready"))
                return
            self.handshake(live, op, START_SECONDS, answered)

        def answered(problem: SandboxError | None) -> None:
            done(live if problem is None else problem)

        source.backend.start(source.profile, image, on_ready)

    def handshake(self, live: Live, op: Op | None, seconds: float, done: Callable[[SandboxError | None], None]) -> None:
        """Exchanges one message with an unheld box, which is then ready, or ended with an error."""
        live.state = State.STARTING
        _box(live).wake()

        def answered(problem: SandboxError | None) -> None:
            live.handshake = None
            if problem is None:
                live.spent = _box(live).usage()
                self._rest(live)
            else:
                self.end(live, Cause.DIED)
            done(problem)

        live.handshake = Handshake(self._reactor, _box(live), op, seconds, answered)

    def hold(self, live: Live, holder: int, pid: int, caller: str) -> tuple[int, int]:
        """Hands over a ready box to a client, once; returns its two descriptors, to be sent on but not closed."""
        box = _box(live)
        assert live.state is State.READY
        self._reactor.watch(box.replies, 0, lambda: None)
        box.wake()
        live.state, live.holder, live.pid, live.caller = State.HELD, holder, pid, caller
        live.held_since = time.monotonic()
        return box.requests, box.replies

    def freeze(
        self, live: Live, folder: Path, done: Callable[[SandboxError | None], None], *, settled: bool = False
    ) -> None:
        """Saves a box's state into an empty folder; the box continues. `settled` as in `Backend.checkpoint`."""
        live.freezing = True

        def begin() -> None:
            self._freezes -= 1
            if live.cause is not None:
                frozen(InfrastructureError(f"sandbox {live.id} has ended"))
            else:
                _box(live).wake()
                live.backend.checkpoint(_box(live), folder, done=frozen, settled=settled)

        def frozen(problem: SandboxError | None) -> None:
            self._freezes += 1
            live.freezing = False
            if live.state is State.READY:
                _box(live).rest()
            if self._to_freeze:
                self._to_freeze.popleft()()
            done(problem)

        if self._freezes > 0:
            begin()
        else:
            self._to_freeze.append(begin)

    def usage(self, live: Live, *, waits: bool = False) -> BoxUsage:
        """Returns a box's usage since it was ready; `waits` count from the start of each thread."""
        if live.termination is not None:
            return live.termination.usage
        return _since(live.spent, _box(live).usage(waits=waits))

    def give_way(self, live: Live, others_first: bool) -> None:
        """Changes the CPU priority of a live box; ignores an ended one. Raises InfrastructureError."""
        if live.cause is None:
            _box(live).group.give_way(others_first)

    def rest(self, live: Live, rests: bool) -> None:
        """Throttles or wakes a held box; ignores one that is being frozen or has ended."""
        if live.cause is None and not live.freezing:
            if rests:
                _box(live).rest()
            else:
                _box(live).wake()

    def end(self, live: Live, cause: Cause, done: Callable[[Termination], None] | None = None) -> None:
        """Kills a box; calls back with its termination, whose cause is the first one given."""
        if live.termination is not None:
            if done is not None:
                done(live.termination)
            return
        if done is not None:
            live.when_ended.append(done)
        if live.cause is not None:
            return
        if live.box is not None and cause is Cause.ASKED and _has_died(live.box):
            cause = Cause.DIED
        live.cause = cause
        starting, live.state = live.state is State.STARTING and live.box is None, State.ENDING
        if not starting:
            self._kill(live)

    def close(self) -> None:
        self._clock.cancel()

    def _rest(self, live: Live) -> None:
        """Marks a box as ready and throttles it. Output before it is handed over ends the box."""
        box = _box(live)
        live.state = State.READY

        def lost() -> None:
            self._reactor.watch(box.replies, 0, lost)
            if live.state is State.READY:
                log.warning("sandbox %s ended or wrote output while unheld: %r", box.id, box.complaint())
                self._ready_lost(live)
                self.end(live, Cause.DIED)

        self._reactor.watch(box.replies, selectors.EVENT_READ, lost)
        box.rest()

    def _kill(self, live: Live) -> None:
        box = _box(live)
        if live.handshake is not None:
            live.handshake.give_up()
        self._reactor.watch(box.replies, 0, lambda: None)
        live.backend.end(box, lambda usage: self._forget(live, usage))

    def _forget(self, live: Live, usage: BoxUsage) -> None:
        cause = live.cause or Cause.DIED
        if usage.oom_kills > live.spent.oom_kills and cause in (Cause.DIED, Cause.ASKED):
            cause = Cause.MEMORY
        live.termination = Termination(cause, _since(live.spent, usage))
        live.state = State.ENDING
        self.alive.pop(live.number, None)
        waiting, live.when_ended = live.when_ended, []
        for done in waiting:
            done(live.termination)
        self._changed()

    def _tick(self) -> None:
        self._clock = self._reactor.after(
            CLOCK_SECONDS / SLICES, self._tick
        )  # first: a failure below must not stop the clock
        self._turn = (self._turn + 1) % SLICES
        for live in list(self.alive.values()):
            if live.state is State.HELD and live.number % SLICES == self._turn:
                try:
                    self._check_limits(live, time.monotonic())
                except Exception:  # one sandbox's failure must not stop the clocks of others
                    log.exception("cannot check the limits of sandbox %s", live.id)

    def _check_limits(self, live: Live, now: float) -> None:
        profile = live.profile
        if _has_died(_box(live)):
            self.end(live, Cause.DIED)
        elif profile.life_seconds is not None and now - live.held_since > profile.life_seconds:
            self.end(live, Cause.EXPIRED)
        elif profile.cpu_seconds is not None and self.usage(live).cpu_seconds > profile.cpu_seconds:
            self.end(live, Cause.CPU)


def _box(live: Live) -> ProcessBox:
    assert live.box is not None
    return live.box


def _has_died(box: ProcessBox) -> bool:
    """True if the other end of a box's reply pipe, which only the guest holds, or our end is closed."""
    if box.replies < 0:
        return True
    poll = select.poll()
    poll.register(box.replies, 0)
    return bool(poll.poll(0))


def _since(before: BoxUsage, now: BoxUsage) -> BoxUsage:
    return now.model_copy(
        update={
            "cpu_seconds": max(0.0, now.cpu_seconds - before.cpu_seconds),
            "oom_kills": now.oom_kills - before.oom_kills,
            "pids_denied": now.pids_denied - before.pids_denied,
        }
    )
