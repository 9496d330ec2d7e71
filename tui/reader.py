"""Reads the control API for the visible screen, in one thread.

Invariants: only the latest questions are asked. A new question is asked immediately; an old one again when the status
shows a change, or after `IDLE_ROUNDS`. A failed question is reported and retried; without a status nothing else is
read. Answers of one daemon are dropped when another one answers.
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
"""Cached answers; the least recently asked are dropped."""


@dataclass(frozen=True)
class Reading:
    """Daemon's answers so far to the screen's questions, with the status they were read under."""

    status: Status
    asked: Mapping[str, ApiQuestion]
    answers: Mapping[str, Any]
    failed: Mapping[str, ApiError]


@dataclass
class _Kept:
    answer: Any
    after: object
    """The daemon's status fingerprint at the time of the read."""
    at: float


class ViewReader:
    """Thread that reads answers from the daemon. `receive` is called in it with every reading and every failure, and
    `client` is created in it."""

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
        """Replaces the questions to be read from the daemon; new ones are read immediately."""
        if {name: one.key for name, one in questions.items()} != {name: one.key for name, one in self._asked.items()}:
            self._asked = questions
            self._wake.set()

    def refresh(self) -> None:
        """Reads the answers to all current questions again now, including those marked as fixed."""
        self._anew = True
        self._wake.set()

    def close(self) -> None:
        self._closed = True
        self._wake.set()

    def run(self) -> None:
        """Reads status and answers from the daemon in a loop; blocks until `close`."""
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
        """Reads the answer to every question that is due. Raises DaemonNotRunning and DaemonSilent; other ApiErrors
        belong to one question."""
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
    """Returns a fingerprint of the daemon's status that differs whenever something worth showing changed."""
    return (status.pid, status.last_event, status.cycle, status.aliases, status.jobs, status.decision)
