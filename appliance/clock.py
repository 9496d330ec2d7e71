"""The wall clock, as every process of this program reads and writes it: UTC, as text in ISO 8601."""

from __future__ import annotations

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
