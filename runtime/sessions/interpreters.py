"""The shared interpreters: many sessions in each, proved not to see one another.

What always holds: an interpreter is started when a session first needs it, sessions are spread over them, and one that
is lost is replaced by one that was kept ready, so its sessions go on after a repetition of their histories. Called from
the reactor only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from runtime.errors import SandboxError
from runtime.guest.wire import Op
from runtime.sandbox import Priority
from runtime.sessions.places import Given, Place, Wish
from runtime.sessions.starts import Starts
from runtime.sessions.worker import Worker


@dataclass(eq=False)
class _Claim:
    wish: Wish
    given: Given
    wanted: bool = True

    def cancel(self) -> None:
        self.wanted = False


@dataclass(eq=False)
class _Slot:
    worker: Worker | None = None
    starting: bool = False
    members: int = 0
    waiting: list[_Claim] = field(default_factory=list)


class Interpreters:
    def __init__(self, starts: Starts, count: int) -> None:
        self._starts = starts
        self._slots = [_Slot() for _ in range(count)]
        self._spare: Worker | None = None
        self._spare_starting = False
        self.begun = False

    def claim(self, wish: Wish, given: Given) -> _Claim:
        claim = _Claim(wish, given)
        slot = min(self._slots, key=lambda one: one.members + len(one.waiting))
        if slot.worker is not None:
            self._seat(slot, slot.worker, claim)
        else:
            slot.waiting.append(claim)
            self._fill(slot)
        return claim

    def begin(self) -> None:
        """Starts the first one, before anybody calls."""
        self.begun = True
        if self._slots[0].worker is None:
            self._fill(self._slots[0])

    def lost(self, worker: Worker) -> None:
        """A sandbox has ended; it may have been one of these."""
        if worker is self._spare:
            self._spare = None
        for slot in self._slots:
            if slot.worker is worker:
                slot.worker, slot.members = None, 0
                if self._spare is not None:
                    self._fill(slot)

    def _fill(self, slot: _Slot) -> None:
        if self._spare is not None:
            spare, self._spare = self._spare, None
            self._filled(slot, spare)
        elif not slot.starting:
            slot.starting = True
            self._starts.launch("shared", priority=Priority.JOB, given=lambda given: self._filled(slot, given))

    def _filled(self, slot: _Slot, given: Worker | SandboxError) -> None:
        slot.starting = False
        claims, slot.waiting = [claim for claim in slot.waiting if claim.wanted], []
        if isinstance(given, SandboxError):
            for claim in claims:
                claim.given(given)
            return
        slot.worker = given
        for claim in claims:
            self._seat(slot, given, claim)
        self._keep_spare()

    def _seat(self, slot: _Slot, worker: Worker, claim: _Claim) -> None:
        slot.members += 1
        session = claim.wish.session
        claim.given(Place(worker, session, self._leaver(slot, worker, session)))

    def _leaver(self, slot: _Slot, worker: Worker, session: int) -> Callable[[], None]:
        def left() -> None:
            worker.tell(Op.DROP, session)
            if slot.worker is worker:
                slot.members -= 1

        return left

    def _keep_spare(self) -> None:
        if self._spare is None and not self._spare_starting:
            self._spare_starting = True
            self._starts.launch("shared", priority=Priority.BACKGROUND, given=self._spare_given)

    def _spare_given(self, given: Worker | SandboxError) -> None:
        self._spare_starting = False
        if isinstance(given, Worker):
            self._spare = given
