"""API routes of the schedule, promotions and notices."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from appliance.client.nights import ComingNight, NoticesTried, PauseSchedule, PromotionView, ScheduleView
from appliance.daemon.api.requests import ApiRequest, ApiRoute, get, post
from appliance.daemon.contract.errors import RequestError
from appliance.daemon.coordination.core import Core
from appliance.daemon.governance.promotions import promotions
from appliance.daemon.nights.notices import Notice
from appliance.nights.calendar import zone_name
from appliance.nights.idle import unknown

LONGEST_PAUSE = timedelta(days=36_500)
TRIAL = Notice("Assay: test notice", "This is a test: notices of ended nights look like this.\n", {"trial": True})


def night_routes(core: Core) -> list[ApiRoute]:
    def pause(asked: ApiRequest) -> ScheduleView:
        core.nights.book.pause(until_time(asked.body(PauseSchedule).until, core.now()))
        return schedule_view(core, 7)

    def resume(asked: ApiRequest) -> ScheduleView:
        core.nights.book.resume()
        return schedule_view(core, 7)

    def try_notices(asked: ApiRequest) -> NoticesTried:
        return NoticesTried(failed=core.notices.try_all(TRIAL))

    return [
        get(
            "/v1/schedule",
            ScheduleView,
            lambda asked: schedule_view(core, asked.limit(7)),
            "The schedule, and why nights are held.",
            ("limit",),
        ),
        get(
            "/v1/promotions",
            list[PromotionView],
            lambda asked: promotions(core.ledger, core.trust.policies.of, limit=asked.limit(100)),
            "Promotions with their gains and losses.",
            ("limit",),
        ),
        post("/v1/schedule/pause", ScheduleView, pause, "Pauses nights until a time.", PauseSchedule),
        post("/v1/schedule/resume", ScheduleView, resume, "Ends the pause of nights."),
        post("/v1/notices/try", NoticesTried, try_notices, "Sends a test notice through every channel."),
    ]


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
