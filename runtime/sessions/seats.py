"""Places of one's own: a process in a sandbox with others, or a whole sandbox; never more than the settings say.

Who comes later waits: by priority, callers in turn. What always holds: a place is freed once, by whoever leaves it or
by a claim that was cancelled; a sandbox that dies while somebody waits for a place in it costs him nothing but time.
Called from the reactor only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from runtime.errors import BusyError, InfrastructureError, SandboxError
from runtime.guest.wire import Kind, Op
from runtime.launcher import Ticket
from runtime.reactor import Reactor, Timer
from runtime.sandbox import Priority, Tier
from runtime.sessions.endings import Ending, Lost
from runtime.sessions.places import Given, Place, Wish
from runtime.sessions.request import Request
from runtime.sessions.starts import Starts
from runtime.sessions.worker import Worker
from runtime.settings import RuntimeSettings
from runtime.turns import Entry, Turns

OPEN_SECONDS = 20.0
BUSY_HINT = "Close sessions that are done, open fewer at once, or raise the number of places in the settings."


@dataclass(eq=False)
class SeatClaim:
    """From the moment it waits until the place is given or not wanted any more."""

    seats: Seats
    wish: Wish
    given: Given | None
    entry: Entry | None = None
    """In the queue, while it is there."""
    timer: Timer | None = None
    ticket: Ticket | None = None
    """At the broker, while it asks for a whole sandbox."""

    def cancel(self) -> None:
        if self.given is not None:
            self.given = None
            self.seats.cancelled(self)


@dataclass(eq=False)
class _Box:
    """A sandbox of the process tier, or the wish for one."""

    worker: Worker | None = None
    starting: bool = False
    members: int = 0
    waiting: list[SeatClaim] = field(default_factory=list)


class Seats:
    def __init__(self, reactor: Reactor, starts: Starts, settings: RuntimeSettings) -> None:
        self._reactor, self._starts, self._settings = reactor, starts, settings
        self._free = {Tier.PROCESS: settings.process_sessions, Tier.SANDBOX: settings.sandboxes}
        self._turns: dict[Tier, Turns[SeatClaim]] = {tier: Turns() for tier in self._free}
        self._boxes: dict[tuple[str, ...], list[_Box]] = {}

    @property
    def waiting(self) -> int:
        return sum(map(len, self._turns.values()))

    def claim(self, wish: Wish, given: Given) -> SeatClaim:
        claim = SeatClaim(self, wish, given)
        if self.waiting >= self._settings.waiting:
            claim.given = None
            given(BusyError(f"{self.waiting} sessions wait for a place already", hint=BUSY_HINT))
            return claim
        claim.entry = self._turns[wish.tier].add(claim, caller=wish.caller, priority=wish.priority)
        self._serve(wish.tier)
        if claim.entry is not None:
            claim.timer = self._reactor.after(self._settings.place_seconds, partial(self._too_late, claim))
        return claim

    def cancelled(self, claim: SeatClaim) -> None:
        if claim.entry is not None:
            self._unqueue(claim, claim.entry)
        elif claim.ticket is not None:
            claim.ticket.cancel()
            self._freed(claim.wish.tier)
        # otherwise it waits for a process, and gives it back when it comes

    def _unqueue(self, claim: SeatClaim, entry: Entry) -> None:
        self._turns[claim.wish.tier].remove(entry)
        claim.entry = None
        if claim.timer is not None:
            claim.timer.cancel()

    def _too_late(self, claim: SeatClaim) -> None:
        given, claim.given = claim.given, None
        if claim.entry is not None and given is not None:
            self._unqueue(claim, claim.entry)
            given(BusyError(f"no place was free for {self._settings.place_seconds:g} seconds", hint=BUSY_HINT))

    def lost(self, worker: Worker) -> None:
        """A sandbox has ended; it may have been one of the process tier."""
        for box in self._boxes.get(worker.profile.preload, []):
            if box.worker is worker:
                box.worker, box.members = None, 0

    def _serve(self, tier: Tier) -> None:
        turns = self._turns[tier]
        while turns and self._free[tier] > 0:
            self._free[tier] -= 1
            claim = turns.take()
            claim.entry = None
            if claim.timer is not None:
                claim.timer.cancel()
            if tier is Tier.PROCESS:
                self._in_box(claim)
            else:
                self._alone(claim)

    def _freed(self, tier: Tier) -> None:
        self._free[tier] += 1
        self._serve(tier)

    def _refuse(self, claim: SeatClaim, error: SandboxError) -> None:
        given, claim.given = claim.given, None
        self._freed(claim.wish.tier)
        if given is not None:
            given(error)

    def _give(self, claim: SeatClaim, place: Place) -> None:
        given, claim.given = claim.given, None
        claim.ticket = None
        if given is not None:
            given(place)
        else:
            place.leave()

    # a process in a sandbox with others

    def _in_box(self, claim: SeatClaim) -> None:
        preload = claim.wish.preload
        boxes = self._boxes.setdefault(preload, [_Box() for _ in range(self._settings.process_boxes)])
        box = min(boxes, key=lambda one: one.members + len(one.waiting))
        if box.worker is not None:
            self._open(claim, box, box.worker)
            return
        box.waiting.append(claim)
        if not box.starting:
            box.starting = True
            self._starts.launch("process", preload=preload, priority=Priority.JOB, given=partial(self._box_given, box))

    def _box_given(self, box: _Box, given: Worker | SandboxError) -> None:
        box.starting = False
        claims, box.waiting = box.waiting, []
        if isinstance(given, Worker):
            box.worker = given
        for claim in claims:
            if isinstance(given, SandboxError):
                self._refuse(claim, given)
            elif claim.given is None:
                self._freed(Tier.PROCESS)
            else:
                self._open(claim, box, given)

    def _open(self, claim: SeatClaim, box: _Box, worker: Worker) -> None:
        box.members += 1
        session = claim.wish.session

        def left() -> None:
            worker.tell(Op.DROP, session)
            if box.worker is worker:
                box.members -= 1
            self._freed(Tier.PROCESS)

        place = Place(worker, session, left)

        def opened(ending: Ending) -> None:
            if ending.kind is Kind.READY or isinstance(ending.kind, Lost):  # the session finds it lost, and goes again
                self._give(claim, place)
            else:
                place.leave()
                given, claim.given = claim.given, None
                if given is not None:
                    given(InfrastructureError(f"sandbox {worker.id} has no process left"))

        wish = claim.wish
        worker.turn(Request(Op.OPEN, session, b"", OPEN_SECONDS, opened, wish.caller, wish.priority))

    # a whole sandbox

    def _alone(self, claim: SeatClaim) -> None:
        wish = claim.wish
        then: Callable[[Worker | SandboxError], None] = partial(self._alone_given, claim)
        if wish.snapshot is not None:
            ticket = self._starts.restore(
                wish.snapshot, reseed=True, caller=wish.caller, priority=wish.priority, given=then
            )
        else:
            ticket = self._starts.launch(
                "sandbox", preload=wish.preload, caller=wish.caller, priority=wish.priority, given=then
            )
        if claim.given is not None:
            claim.ticket = ticket

    def _alone_given(self, claim: SeatClaim, given: Worker | SandboxError) -> None:
        claim.ticket = None
        if isinstance(given, SandboxError):
            self._refuse(claim, given)
            return
        worker = given

        def left() -> None:
            worker.lose(Lost.DIED)
            self._freed(Tier.SANDBOX)

        self._give(claim, Place(worker, 0, left))
