"""Times in ISO 8601; times without a zone are read as UTC."""

from __future__ import annotations

from datetime import UTC, datetime


def moment(text: str) -> datetime:
    """Parses an ISO 8601 time into UTC. Raises ValueError, OverflowError."""
    found = datetime.fromisoformat(text)
    return found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)


def hours_between(earlier: str, later: str) -> float:
    """Returns the hours from `earlier` to `later`, negative if reversed. Raises ValueError for an invalid time."""
    return (moment(later) - moment(earlier)).total_seconds() / 3600
