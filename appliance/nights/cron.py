"""Nights by a cron line, each beginning at a minute and without an end; and the configured calendar.

Invariants: the line is matched against the local wall clock; a minute that the clock skips has its night at the moment
of the skip, even at midnight; a local minute that repeats has one night, at its first pass.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from appliance.nights.calendar import (
    NightCalendar,
    NightlyWindow,
    Occasion,
    first_moment,
    has_date,
    machine_zone,
    zone_name,
)
from appliance.nights.settings import DEFAULT_WINDOW, ScheduleSettings, parse_cron, parse_window

MOST = 100_000
"""Fire times examined at most: two months of a line that fires every minute."""
SKIP = timedelta(hours=3)
"""More than any clock is set forward within a date."""


@dataclass(frozen=True)
class CronTimes:
    line: str
    zone: ZoneInfo

    @property
    def text(self) -> str:
        return f"cron {self.line}, {zone_name(self.zone)}"

    def opening(self, start: datetime, end: datetime) -> Iterator[Occasion]:
        # The library drops a date whose midnight the zone skips, so it only computes wall times.
        trigger = parse_cron(self.line, ZoneInfo("UTC"))
        wall, last = start.astimezone(self.zone).replace(tzinfo=UTC) - SKIP, start - timedelta(seconds=1)
        for _ in range(MOST):
            found: datetime | None = trigger.get_next_fire_time(None, wall)
            if found is None:
                return
            wall, shown = found + timedelta(seconds=1), found.replace(tzinfo=None)
            opens = first_moment(shown, self.zone)
            if opens >= end:
                return
            if opens >= start and opens > last and has_date(self.zone, shown.date()):
                last = opens
                yield Occasion(shown.strftime("%Y-%m-%dT%H:%M"), opens, None)


def calendar_of(schedule: ScheduleSettings) -> NightCalendar:
    """Returns the calendar of nights that the settings describe: a cron line, or a window."""
    zone = ZoneInfo(schedule.timezone) if schedule.timezone is not None else machine_zone()
    if schedule.cron is not None:
        return CronTimes(schedule.cron, zone)
    begins, ends = parse_window(schedule.nightly or DEFAULT_WINDOW)
    return NightlyWindow(begins, ends, schedule.weekdays, zone)
