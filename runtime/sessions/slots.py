"""Grants separate ports: a process in a shared sandbox, or a whole sandbox; never more than the settings permit.

Later requests wait, by priority and round-robin among callers. Invariants: a place is freed once, by leaving it or by a
cancelled claim; a sandbox that dies while someone waits for a place in it costs them only time. Called from the reactor
only.

Shared interpreters: many sessions in each, proved unable to see one another.

Invariants: an interpreter starts when a session first needs it, sessions are spread over them, and a lost one is
replaced by a spare, so its sessions continue after a replay of their histories. Called from the reactor only.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from runtime.broker_api import SnapshotCopy, Ticket
from runtime.errors import BusyError, SandboxError, StartError
from runtime.fair_queue import FairQueue, QueueEntry
from runtime.guest.wire import Op, ReplyKind
from runtime.profile import Profile
from runtime.reactor import Reactor, Timer
from runtime.sandbox import Priority, Tier
from runtime.sessions.outcomes import CallOutcome, LossCause
from runtime.sessions.ports import OnPort, Port, PortRequest, SharedBox
from runtime.sessions.session_queue import SessionRequest
from runtime.sessions.starts import SessionStarts, Started
from runtime.sessions.worker import Worker
from runtime.settings import RuntimeSettings

OPEN_SECONDS = 20.0
BUSY_HINT = "Close finished sessions, open fewer concurrently, or raise the number of places in the settings."


@dataclass(eq=False)
class SlotClaim:
    """Claim of a place for a session in a sandbox, until it is granted or no longer wanted."""

    slots: Slots
    terms: PortRequest
    on_ready: OnPort | None
    entry: QueueEntry | None = None
    """Position in the queue while it waits there."""
    timer: Timer | None = None
    ticket: Ticket | None = None
    """Broker request for a whole sandbox."""

    def cancel(self) -> None:
        if self.on_ready is not None:
            self.on_ready = None
            self.slots.cancelled(self)

    def answer(self, found: Port | SandboxError) -> bool:
        """Passes the granted place, or the error, to the waiting callback. False if answered or cancelled before."""
        on_ready, self.on_ready = self.on_ready, None
        if on_ready is not None:
            on_ready(found)
        return on_ready is not None


class Slots:
    def __init__(self, reactor: Reactor, starts: SessionStarts, settings: RuntimeSettings) -> None:
        self._reactor, self._starts, self._settings = reactor, starts, settings
        self._free = {Tier.PROCESS: settings.process_sessions, Tier.SANDBOX: settings.sandboxes}
        self._turns: dict[Tier, FairQueue[SlotClaim]] = {tier: FairQueue() for tier in self._free}
        self._boxes: dict[tuple[str, ...], list[SharedBox[SlotClaim]]] = {}

    @property
    def waiting(self) -> int:
        return sum(map(len, self._turns.values()))

    def claim(self, terms: PortRequest, on_ready: OnPort) -> SlotClaim:
        claim = SlotClaim(self, terms, on_ready)
        if self.waiting >= self._settings.waiting:
            claim.answer(BusyError(f"{self.waiting} sessions are already waiting for a place", hint=BUSY_HINT))
            return claim
        claim.entry = self._turns[terms.tier].add(claim, caller=terms.caller, priority=terms.priority)
        self._serve(terms.tier)
        if claim.entry is not None:
            claim.timer = self._reactor.after(self._settings.place_seconds, partial(self._too_late, claim))
        return claim

    def cancelled(self, claim: SlotClaim) -> None:
        if claim.entry is not None:
            self._unqueue(claim, claim.entry)
        elif claim.ticket is not None:
            claim.ticket.cancel()
            self._freed(claim.terms.tier)
        # otherwise it waits for a process, and releases it on arrival

    def _unqueue(self, claim: SlotClaim, entry: QueueEntry) -> None:
        self._turns[claim.terms.tier].remove(entry)
        claim.entry = None
        if claim.timer is not None:
            claim.timer.cancel()

    def _too_late(self, claim: SlotClaim) -> None:
        if claim.entry is not None:
            self._unqueue(claim, claim.entry)
            claim.answer(BusyError(f"no place was free for {self._settings.place_seconds:g} seconds", hint=BUSY_HINT))

    def lost(self, worker: Worker) -> None:
        """Handles the end of a sandbox, which may be one of the process tier's: its places are gone."""
        for box in self._boxes.get(worker.profile.preload, []):
            box.lost(worker)

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

    def _refuse(self, claim: SlotClaim, error: SandboxError) -> None:
        self._freed(claim.terms.tier)
        claim.answer(error)

    def _give(self, claim: SlotClaim, port: Port) -> None:
        claim.ticket = None
        if not claim.answer(port):
            port.leave()

    # a process in a sandbox with others

    def _in_box(self, claim: SlotClaim) -> None:
        preload = claim.terms.preload
        boxes = self._boxes.setdefault(preload, [SharedBox() for _ in range(self._settings.process_boxes)])
        box = min(boxes, key=len)
        if box.worker is not None:
            self._open(claim, box, box.worker)
            return
        box.waiting.append(claim)
        if not box.starting:
            box.starting = True
            self._starts.launch(
                self._starts.profile("process", preload), priority=Priority.JOB, on_ready=partial(self._box_ready, box)
            )

    def _box_ready(self, box: SharedBox[SlotClaim], answer: Worker | SandboxError) -> None:
        box.starting = False
        claims, box.waiting = box.waiting, []
        if isinstance(answer, Worker):
            box.worker = answer
        for claim in claims:
            if isinstance(answer, SandboxError):
                self._refuse(claim, answer)
            elif claim.on_ready is None:
                self._freed(Tier.PROCESS)
            else:
                self._open(claim, box, answer)

    def _open(self, claim: SlotClaim, box: SharedBox[SlotClaim], worker: Worker) -> None:
        port = box.port(worker, claim.terms.session, partial(self._freed, Tier.PROCESS))

        def opened(outcome: CallOutcome) -> None:
            if outcome.kind is ReplyKind.READY or isinstance(outcome.kind, LossCause):
                self._give(claim, port)  # if lost, the session notices and retries
            else:
                port.leave()
                claim.answer(StartError(f"sandbox {worker.id} has no process left"))

        terms = claim.terms
        worker.turn(SessionRequest(Op.OPEN, port.number, b"", OPEN_SECONDS, opened, terms.caller, terms.priority))

    # a whole sandbox

    def _alone(self, claim: SlotClaim) -> None:
        terms = claim.terms
        if terms.snapshot is None:
            wanted: Profile | SnapshotCopy = self._starts.profile(
                "sandbox", terms.preload, userland=terms.userland, packages=terms.packages
            )
        else:
            wanted = SnapshotCopy(snapshot=terms.snapshot, reseed=True)
        on_ready = partial(self._sandbox_ready, claim)
        ticket = self._starts.launch(wanted, caller=terms.caller, priority=terms.priority, on_ready=on_ready)
        if claim.on_ready is not None:
            claim.ticket = ticket

    def _sandbox_ready(self, claim: SlotClaim, answer: Worker | SandboxError) -> None:
        claim.ticket = None
        if isinstance(answer, SandboxError):
            self._refuse(claim, answer)
            return
        worker = answer

        def left() -> None:
            worker.lose(LossCause.DIED)
            self._freed(Tier.SANDBOX)

        self._give(claim, Port(worker, 0, left))


@dataclass(eq=False)
class _Claim:
    terms: PortRequest
    on_ready: OnPort
    wanted: bool = True

    def cancel(self) -> None:
        self.wanted = False


class Interpreters:
    def __init__(self, starts: SessionStarts, count: int) -> None:
        self._starts = starts
        self._boxes: list[SharedBox[_Claim]] = [SharedBox() for _ in range(count)]
        self._spare: Worker | None = None
        self._spare_starting = False
        self.begun = False

    def claim(self, terms: PortRequest, on_ready: OnPort) -> _Claim:
        claim = _Claim(terms, on_ready)
        box = min(self._boxes, key=len)
        if box.worker is not None:
            self._assign(box, box.worker, claim)
        else:
            box.waiting.append(claim)
            self._fill(box)
        return claim

    def begin(self) -> None:
        """Starts the first shared interpreter before any call."""
        self.begun = True
        if self._boxes[0].worker is None:
            self._fill(self._boxes[0])

    def lost(self, worker: Worker) -> None:
        """Handles the end of a sandbox, which may be a shared interpreter: a spare, if ready, takes over."""
        if worker is self._spare:
            self._spare = None
        for box in self._boxes:
            if box.lost(worker) and self._spare is not None:
                self._fill(box)

    def _fill(self, box: SharedBox[_Claim]) -> None:
        if self._spare is not None:
            spare, self._spare = self._spare, None
            self._filled(box, spare)
        elif not box.starting:
            box.starting = True
            self._launch(Priority.JOB, lambda answer: self._filled(box, answer))

    def _filled(self, box: SharedBox[_Claim], answer: Worker | SandboxError) -> None:
        box.starting = False
        claims, box.waiting = [claim for claim in box.waiting if claim.wanted], []
        if isinstance(answer, SandboxError):
            for claim in claims:
                claim.on_ready(answer)
            return
        box.worker = answer
        for claim in claims:
            self._assign(box, answer, claim)
        self._keep_spare()

    def _assign(self, box: SharedBox[_Claim], worker: Worker, claim: _Claim) -> None:
        claim.on_ready(box.port(worker, claim.terms.session, lambda: None))

    def _keep_spare(self) -> None:
        if self._spare is None and not self._spare_starting:
            self._spare_starting = True
            self._launch(Priority.BACKGROUND, self._spare_ready)

    def _launch(self, priority: Priority, on_ready: Started) -> None:
        self._starts.launch(self._starts.profile("shared"), priority=priority, on_ready=on_ready)

    def _spare_ready(self, answer: Worker | SandboxError) -> None:
        self._spare_starting = False
        if isinstance(answer, Worker):
            self._spare = answer
