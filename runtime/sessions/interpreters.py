"""Shared interpreters: many sessions in each, proved unable to see one another.

Invariants: an interpreter starts when a session first needs it, sessions are spread over them, and a lost one is
replaced by a spare, so its sessions continue after a replay of their histories. Called from the reactor only.
"""

from __future__ import annotations

from dataclasses import dataclass

from runtime.errors import SandboxError
from runtime.sandbox import Priority
from runtime.sessions.ports import OnPort, PortRequest, SharedBox
from runtime.sessions.starts import SessionStarts, Started
from runtime.sessions.worker import Worker


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
