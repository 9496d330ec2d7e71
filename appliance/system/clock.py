"""Wall clock (UTC, ISO 8601 text) for all processes, and a clock for deadlines that nobody can set."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime


def now() -> datetime:
    """Returns the current time in UTC."""
    return datetime.now(UTC)


def utc_now() -> str:
    """Returns the current time as ISO 8601 text with milliseconds."""
    return now().isoformat(timespec="milliseconds")


def file_stamp() -> str:
    """Returns the current time, to the second, for use in file names."""
    return now().strftime("%Y%m%dT%H%M%S")


def seconds_between(start: str, end: str) -> float:
    """Returns the seconds from `start` to `end`, negative if `end` is earlier. Raises ValueError for an invalid
    time."""
    return (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds()


class RunningClock:
    """Counts the seconds that this process ran, so that nothing seems overdue after a pause. A pause of more than
    `most` seconds (stopped process, sleeping machine) counts as `most`. Must be read more often than that; threads may
    share it."""

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
