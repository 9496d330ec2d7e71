"""Reads the control API for the visible screen, in one thread.

What always holds: only the questions that were last given are asked; a new one is asked at once, and an old one again
only when the status shows that something happened, or after `IDLE_ROUNDS`. A question that fails says so and is asked
again; without a status there is nothing else. What one daemon answered is forgotten where another one answers.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from appliance.client import ApiError, DaemonNotRunning, DaemonSilent
from tui.widgets.view import ApiQuestion

if TYPE_CHECKING:  # loaded with the first answer
    from appliance.client import ApiClient, Status

IDLE_ROUNDS = 5
MOST_KEPT = 256
"""Answers; the ones that were not asked for longest are forgotten."""


@dataclass(frozen=True)
class Reading:
    """What is known to the questions that were asked, so far."""

    status: Status
    asked: Mapping[str, ApiQuestion]
    answers: Mapping[str, Any]
    failed: Mapping[str, ApiError]


@dataclass
class _Kept:
    answer: Any
    after: object
    """What the status said when it was read."""
    at: float


class ViewReader:
    """`receive` gets every reading and every failure, in this thread, which also makes the client."""

    def __init__(
        self, client: Callable[[], ApiClient], receive: Callable[[Reading | ApiError], object], *, seconds: float = 1.0
    ) -> None:
        self._make = client
        self._receive = receive
        self._seconds = seconds
        self._asked: Mapping[str, ApiQuestion] = {}
        self._kept: OrderedDict[Hashable, _Kept] = OrderedDict()
        self._wake = threading.Event()
        self._closed = False
        self._anew = False

    def ask(self, questions: Mapping[str, ApiQuestion]) -> None:
        """These are what is to be known from now on; what is new is read at once."""
        if {name: one.key for name, one in questions.items()} != {name: one.key for name, one in self._asked.items()}:
            self._asked = questions
            self._wake.set()

    def refresh(self) -> None:
        """Everything that is asked is read again now, also what should never change."""
        self._anew = True
        self._wake.set()

    def close(self) -> None:
        self._closed = True
        self._wake.set()

    def run(self) -> None:
        """Blocks until `close`."""
        client = self._make()
        status: Status | None = None
        source = "", 0
        due = 0.0
        while not self._closed:
            self._wake.clear()
            anew, self._anew = self._anew, False
            try:
                timely = time.monotonic() >= due or anew
                if status is None or timely:
                    status = client.status()
                    if (status.data, status.pid) != source:
                        self._kept.clear()
                        source = status.data, status.pid
                    due = time.monotonic() + self._seconds
                self._read(client, status, timely=timely, anew=anew)
            except ApiError as error:
                status, due = None, time.monotonic() + self._seconds
                self._receive(error)
            if status is None or not self._wake.is_set():
                self._wake.wait(max(0.0, due - time.monotonic()))

    def _read(self, client: ApiClient, status: Status, *, timely: bool, anew: bool) -> None:
        """Raises DaemonNotRunning and DaemonSilent; any other ApiError is the question's own."""
        asked = self._asked
        failed: dict[str, ApiError] = {}
        self._tell(status, asked, failed)
        for name, question in asked.items():
            if self._closed or self._asked is not asked:
                return
            if not self._is_due(question, status, timely=timely, anew=anew):
                continue
            try:
                answer = question.read(client, status)
            except (DaemonNotRunning, DaemonSilent):
                raise
            except ApiError as error:
                failed[name] = error
            else:
                self._kept[question.key] = _Kept(answer, _changes(status), time.monotonic())
                while len(self._kept) > MOST_KEPT:
                    self._kept.popitem(last=False)
            self._tell(status, asked, failed)

    def _is_due(self, question: ApiQuestion, status: Status, *, timely: bool, anew: bool) -> bool:
        kept = self._kept.get(question.key)
        if kept is None:
            return True
        self._kept.move_to_end(question.key)
        if not anew and (question.fixed or not timely):
            return False
        age = time.monotonic() - kept.at
        if anew or question.live:
            return anew or age >= question.seconds
        return age >= question.seconds and (
            kept.after != _changes(status) or age >= max(IDLE_ROUNDS * self._seconds, question.seconds)
        )

    def _tell(self, status: Status, asked: Mapping[str, ApiQuestion], failed: Mapping[str, ApiError]) -> None:
        answers = {name: self._kept[one.key].answer for name, one in asked.items() if one.key in self._kept}
        self._receive(Reading(status, asked, answers, dict(failed)))


def _changes(status: Status) -> tuple[object, ...]:
    """What changes whenever anything worth showing does."""
    return (status.pid, status.last_event, status.cycle, status.aliases, status.jobs, status.decision)
