"""What the screen shows, read from the control API in one go, by one thread."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from appliance.client import ApiClient, ApiError, Artifact, CheckpointView, Event, Job, RolloutView, Status

ROLLOUTS, CHECKPOINTS, JOBS, EVENTS = 40, 30, 30, 500
"""How many of each are read; of events, how many are kept."""


@dataclass(frozen=True)
class Snapshot:
    status: Status
    rollouts: tuple[RolloutView, ...] = ()
    checkpoints: tuple[CheckpointView, ...] = ()
    jobs: tuple[Job, ...] = ()
    artifacts: tuple[Artifact, ...] = ()
    events: tuple[tuple[int, Event], ...] = ()
    """(number, event), ascending: the newest ones."""


def read(client: ApiClient, last: Snapshot | None = None) -> Snapshot:
    """Everything anew, except events that `last` has. Raises ApiError."""
    status = client.status()
    known = last.events if last is not None and _continues(last, status) else ()
    after = known[-1][0] if known else max(0, status.last_event - EVENTS)
    fresh = tuple((numbered.number, numbered.event) for numbered in client.events(after=after, limit=EVENTS))
    return Snapshot(
        status=status,
        rollouts=tuple(client.rollouts(limit=ROLLOUTS)),
        checkpoints=tuple(client.checkpoints(limit=CHECKPOINTS)),
        jobs=tuple(client.jobs(limit=JOBS)),
        artifacts=tuple(client.artifacts(limit=JOBS)),
        events=(known + fresh)[-EVENTS:],
    )


def _continues(last: Snapshot, status: Status) -> bool:
    """Whether it is the same data folder's history that goes on."""
    return last.status.data == status.data and last.status.last_event <= status.last_event


class Reader:
    """Reads again and again until it is closed. `told` hears of every snapshot and every failure, in this thread.

    A status is read each time; the rest only when the status shows that something happened, or after `idle_rounds`.
    """

    def __init__(self, socket: Path, told: Callable[[Snapshot | ApiError], object], *, seconds: float = 1.0) -> None:
        self._socket = socket
        self._told = told
        self._seconds = seconds
        self._wake = threading.Event()
        self._closed = False
        self._idle_rounds = 5

    def run(self) -> None:
        """Blocks until `close`."""
        last: Snapshot | None = None
        rounds = 0
        with ApiClient(self._socket, timeout_seconds=5.0) as client:
            while not self._closed:
                try:
                    last, rounds = self._next(client, last, rounds)
                    self._told(last)
                except ApiError as error:
                    last = None
                    self._told(error)
                if self._wake.wait(self._seconds):
                    self._wake.clear()
                    rounds = self._idle_rounds

    def refresh(self) -> None:
        """Everything is read at once, not at the next round."""
        self._wake.set()

    def close(self) -> None:
        self._closed = True
        self._wake.set()

    def _next(self, client: ApiClient, last: Snapshot | None, rounds: int) -> tuple[Snapshot, int]:
        if last is None or rounds >= self._idle_rounds:
            return read(client, last), 0
        status = client.status()
        if _signs(status) != _signs(last.status):
            return read(client, last), 0
        return replace(last, status=status), rounds + 1


def _signs(status: Status) -> tuple[object, ...]:
    """What changes whenever anything worth showing does."""
    return (status.pid, status.last_event, status.cycle, status.aliases, status.jobs, status.decision)
