"""View of the schedule, and the end of a pause."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from appliance.client.nights import ComingNight, ScheduleView
from appliance.daemon.contract.errors import RequestError
from appliance.daemon.coordination.core import Core
from appliance.nights.calendar import zone_name
from appliance.nights.idle import unknown

LONGEST_PAUSE = timedelta(days=36_500)


def schedule_view(core: Core, limit: int) -> ScheduleView:
    nights = core.nights
    state, coming = nights.book.state(), nights.book.coming(min(limit, 100))
    seen = nights.seen if nights.looked else nights.machine()
    return ScheduleView(
        enabled=nights.rules.enabled,
        calendar=nights.calendar.text,
        zone=zone_name(nights.calendar.zone),
        paused=state.paused,
        until=state.until,
        holds=nights.why,
        coming=tuple(
            ComingNight(
                key=one.key,
                opens=one.opens.isoformat(timespec="seconds"),
                closes=one.closes.isoformat(timespec="seconds") if one.closes else "",
            )
            for one in coming
        ),
        nights=tuple(nights.book.nights(limit)),
        unknown=unknown(seen, nights.rules.idle, energy=nights.rules.max_energy is not None),
    )


def until_time(text: str, now: str) -> str:
    """Parses the end of a pause into UTC. Raises RequestError for an invalid, zoneless, past or too distant time."""
    if not text:
        return ""
    try:
        until = datetime.fromisoformat(text)
    except ValueError as error:
        raise RequestError(f"invalid time {text!r}", hint="write it as 2026-12-01T08:00+01:00") from error
    if until.tzinfo is None:
        raise RequestError(f"{text!r} has no time zone", hint="write it as 2026-12-01T08:00+01:00")
    ahead = until - datetime.fromisoformat(now)
    if ahead <= timedelta():
        raise RequestError(f"{text!r} is in the past", hint="name a later time, or `assay schedule resume`")
    if ahead > LONGEST_PAUSE:
        raise RequestError(
            f"{text!r} is more than {LONGEST_PAUSE.days:,} days away",
            hint="pause without a time: nights then wait for `assay schedule resume`",
        )
    return until.astimezone(UTC).isoformat(timespec="seconds")
