"""Nights by a cron line, for those who have one: each begins at a minute and has no end; and the calendar in force.

What always holds: a local minute that comes twice has one night, for its key is the minute as the clock shows it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from appliance.nights.calendar import NightCalendar, NightlyWindow, Occasion, machine_zone, zone_name
from appliance.nights.parsing import parse_cron, parse_window
from appliance.nights.settings import DEFAULT_WINDOW, ScheduleSettings

MOST = 100_000
"""Times that are looked at: a line for every minute has as many in two months."""


@dataclass(frozen=True)
class CronTimes:
    line: str
    zone: ZoneInfo

    @property
    def text(self) -> str:
        return f"cron {self.line}, {zone_name(self.zone)}"

    def opening(self, start: datetime, end: datetime) -> Iterator[Occasion]:
        trigger = parse_cron(self.line, self.zone)
        seen, moment = "", start
        for _ in range(MOST):
            found: datetime | None = trigger.get_next_fire_time(None, moment)
            if found is None or found.astimezone(UTC) >= end:
                return
            key = found.strftime("%Y-%m-%dT%H:%M")
            if key > seen:
                seen = key
                yield Occasion(key, found.astimezone(UTC), None)
            moment = found.astimezone(UTC) + timedelta(seconds=1)


def calendar_of(schedule: ScheduleSettings) -> NightCalendar:
    """The calendar that is configured."""
    zone = ZoneInfo(schedule.timezone) if schedule.timezone is not None else machine_zone()
    if schedule.cron is not None:
        return CronTimes(schedule.cron, zone)
    begins, ends = parse_window(schedule.nightly or DEFAULT_WINDOW)
    return NightlyWindow(begins, ends, schedule.weekdays, zone)
