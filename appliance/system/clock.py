"""The wall clock, as every process of this program reads and writes it: UTC, as text in ISO 8601; and a clock for
deadlines, which nobody can set."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime


def now() -> datetime:
    """Reads the clock; the zone is UTC."""
    return datetime.now(UTC)


def utc_now() -> str:
    """Reads the clock as text, to the millisecond."""
    return now().isoformat(timespec="milliseconds")


def file_stamp() -> str:
    """Reads the clock as a part of a file's name, to the second."""
    return now().strftime("%Y%m%dT%H%M%S")


def seconds_between(start: str, end: str) -> float:
    """Counts from one to the other; negative when `end` is the earlier one. Raises ValueError for what is no time."""
    return (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds()


class RunningClock:
    """Counts the seconds that this process ran: a pause of more than `most` (it was stopped by a signal, the machine
    slept) counts as `most`. So a process that was away finds nothing overdue that only it kept waiting. It has to be
    read more often than that; threads may share it."""

    def __init__(self, source: Callable[[], float] = time.monotonic, most: float = 15.0) -> None:
        self._source, self._most = source, most
        self._lock = threading.Lock()
        self._at, self._seconds = source(), 0.0

    def __call__(self) -> float:
        with self._lock:
            now = self._source()
            self._seconds += min(max(0.0, now - self._at), self._most)
            self._at = now
            return self._seconds
