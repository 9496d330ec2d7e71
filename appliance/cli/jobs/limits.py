"""Reads the limits of a job that people type: a deadline, and a budget. Pure."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from appliance.errors import UsageError
from appliance.records.jobs import MOST_ATTEMPTS, MOST_TOKENS

_UNITS = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}
_SPAN = re.compile(r"(?:(\d{1,5})d)?(?:(\d{1,5})h)?(?:(\d{1,6})m)?(?:(\d{1,7})s)?", re.ASCII)
HINT = "write a duration such as 90m, 2h or 1d12h, or a time such as 2026-05-01T18:00"


def deadline_of(given: str | datetime | None, now: datetime, what: str = "the deadline") -> str | None:
    """Returns a deadline in UTC, ISO 8601; `what` names it in messages. A time without a zone gets `now`'s. Raises
    UsageError for an invalid or past time."""
    if given is None:
        return None
    moment = given if isinstance(given, datetime) else _moment(given.strip(), now)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=now.tzinfo)
    try:
        moment = moment.astimezone(UTC)
    except (OverflowError, ValueError) as error:
        raise UsageError(f"{what} is out of range", hint=HINT) from error
    if moment <= now:
        raise UsageError(f"{what} has passed: {given}", hint=HINT)
    return moment.isoformat(timespec="seconds")


def _seconds(text: str) -> int | None:
    """Returns the seconds of a duration such as 1d12h; None for any other text."""
    span = _SPAN.fullmatch(text)
    if not text or span is None:
        return None
    return sum(int(count or 0) * unit for count, unit in zip(span.groups(), _UNITS.values(), strict=True))


_LIMIT = re.compile(r"(\d{1,20}(?:\.\d{1,20})?(?:e[+-]?\d{1,3})?)(s|seconds?|tokens?|attempts?)?", re.ASCII)
_LIMITS = {"": "budget_seconds", "second": "budget_seconds", "token": "budget_tokens", "attempt": "attempts"}
BUDGET_HINT = "write seconds (600, 10m), tokens (20000 tokens), attempts (8 attempts), or several with commas"


def budget_of(given: str | None) -> dict[str, int | float]:
    """Returns the fields of `SubmitJob` that a job's budget sets. Raises UsageError for an empty or unreadable one."""
    limits: dict[str, int | float] = {}
    for part in given.split(",") if given is not None else ():
        text = "".join(part.lower().split())
        found = _LIMIT.fullmatch(text)
        field = _LIMITS[(found[2] or "").removesuffix("s") if found else ""]
        amount = float(found[1]) if found else float(_seconds(text) or 0)
        whole = field == "budget_seconds" or amount.is_integer()
        if not whole or not 0 < amount <= (MOST_ATTEMPTS if field == "attempts" else MOST_TOKENS):
            raise UsageError(f"invalid budget {given!r}", hint=BUDGET_HINT)
        if field in limits:
            raise UsageError(f"the budget {given!r} has two limits of one kind", hint="keep one of them")
        limits[field] = amount if field == "budget_seconds" else int(amount)
    return limits


def _moment(text: str, now: datetime) -> datetime:
    try:
        if (seconds := _seconds(text)) is not None:
            return now + timedelta(seconds=seconds)
        return datetime.fromisoformat(text)
    except (ValueError, OverflowError) as error:
        raise UsageError(f"invalid time {text[:40]!r}", hint=HINT) from error
