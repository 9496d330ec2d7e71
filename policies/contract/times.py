"""Times in ISO 8601, in UTC; one without a zone is taken for UTC."""

from __future__ import annotations

from datetime import UTC, datetime


def moment(text: str) -> datetime:
    """Reads a time. Raises ValueError, OverflowError."""
    found = datetime.fromisoformat(text)
    return found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)


def hours_between(earlier: str, later: str) -> float:
    """Counts the hours; negative when `later` is the earlier one. Raises ValueError if one is no time."""
    return (moment(later) - moment(earlier)).total_seconds() / 3600
