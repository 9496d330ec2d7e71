"""What the screen shows, read from the control API in one go, by one thread."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from appliance.client import ApiClient, ApiError, Event, Status
from tui.table import Table

EVENTS = 500
"""How many are kept."""


@dataclass(frozen=True)
class StatusSnapshot:
    status: Status
    records: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    """What each table shows, by the table's name."""
    events: tuple[tuple[int, Event], ...] = ()
    """(number, event), ascending: the newest ones."""


def read(client: ApiClient, tables: Sequence[Table], last: StatusSnapshot | None = None) -> StatusSnapshot:
    """Everything anew, except events that `last` has. Raises ApiError."""
    status = client.status()
    known = last.events if last is not None and _continues(last, status) else ()
    after = known[-1][0] if known else max(0, status.last_event - EVENTS)
    fresh = tuple((numbered.number, numbered.event) for numbered in client.events(after=after, limit=EVENTS))
    records = {table.name: tuple(table.fetch(client)) for table in tables}
    return StatusSnapshot(status=status, records=records, events=(known + fresh)[-EVENTS:])


def _continues(last: StatusSnapshot, status: Status) -> bool:
    """Whether it is the same data folder's history that goes on."""
    return last.status.data == status.data and last.status.last_event <= status.last_event


class SnapshotReader:
    """Reads again and again until it is closed. `receive` gets every snapshot and every failure, in this thread.

    A status is read each time; the rest only when the status shows that something happened, or after `idle_rounds`.
    """

    def __init__(
        self,
        socket: Path,
        receive: Callable[[StatusSnapshot | ApiError], object],
        tables: Sequence[Table],
        *,
        seconds: float = 1.0,
    ) -> None:
        self._tables = tables
        self._socket = socket
        self._receive = receive
        self._seconds = seconds
        self._wake = threading.Event()
        self._closed = False
        self._idle_rounds = 5

    def run(self) -> None:
        """Blocks until `close`."""
        last: StatusSnapshot | None = None
        rounds = 0
        client = ApiClient(self._socket, timeout_seconds=5.0)
        while not self._closed:
            try:
                last, rounds = self._next(client, last, rounds)
                self._receive(last)
            except ApiError as error:
                last = None
                self._receive(error)
            if self._wake.wait(self._seconds):
                self._wake.clear()
                rounds = self._idle_rounds

    def refresh(self) -> None:
        """Everything is read at once, not at the next round."""
        self._wake.set()

    def close(self) -> None:
        self._closed = True
        self._wake.set()

    def _next(self, client: ApiClient, last: StatusSnapshot | None, rounds: int) -> tuple[StatusSnapshot, int]:
        if last is None or rounds >= self._idle_rounds:
            return read(client, self._tables, last), 0
        status = client.status()
        if _changes(status) != _changes(last.status):
            return read(client, self._tables, last), 0
        return replace(last, status=status), rounds + 1


def _changes(status: Status) -> tuple[object, ...]:
    """What changes whenever anything worth showing does."""
    return (status.pid, status.last_event, status.cycle, status.aliases, status.jobs, status.decision)
