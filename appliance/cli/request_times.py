"""Until when a job is wanted: a time, or a span from now. Pure."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from appliance.errors import UsageError

_UNITS = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}
_SPAN = re.compile(r"(?:(\d{1,5})d)?(?:(\d{1,5})h)?(?:(\d{1,6})m)?(?:(\d{1,7})s)?")
HINT = "write a span as in 90m, 2h or 1d12h, or a time as in 2026-05-01T18:00"


def deadline_of(given: str | datetime | None, now: datetime, what: str = "the deadline") -> str | None:
    """UTC in ISO 8601; `what` it is, for a message. A time without a zone is one of `now`'s zone. Raises UsageError for
    anything else, and for what has passed."""
    if given is None:
        return None
    moment = given if isinstance(given, datetime) else _moment(given.strip(), now)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=now.tzinfo)
    try:
        moment = moment.astimezone(UTC)
    except (OverflowError, ValueError) as error:
        raise UsageError(f"{what} is no time that can be waited for", hint=HINT) from error
    if moment <= now:
        raise UsageError(f"{what} has passed: {given}", hint=HINT)
    return moment.isoformat(timespec="seconds")


def _moment(text: str, now: datetime) -> datetime:
    span = _SPAN.fullmatch(text)
    try:
        if text and span is not None:
            seconds = sum(int(count or 0) * unit for count, unit in zip(span.groups(), _UNITS.values(), strict=True))
            return now + timedelta(seconds=seconds)
        return datetime.fromisoformat(text)
    except (ValueError, OverflowError) as error:
        raise UsageError(f"{text[:40]!r} is no time", hint=HINT) from error
