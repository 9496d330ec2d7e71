"""Calendar of nights: windows by the settings or a cron line, in the machine's zone. Pure.

Invariants: each existing local date has at most one window, and each window has a positive length, even where the clock
is set forward or back in it. A start that the clock skips becomes the moment of the skip; a skipped end moves later by
as much as the clock was set forward; a window that the skip would swallow keeps its length. A window includes both
passes of an hour that repeats: it opens at the first and closes at the second. A date that a zone leaves out
(Pacific/Apia, 2011-12-30) has no window.

The line is matched against the local wall clock; a minute that the clock skips has its night at the moment of the skip,
even at midnight; a local minute that repeats has one night, at its first pass.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import NamedTuple, Protocol
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from appliance.nights.settings import DEFAULT_WINDOW, ScheduleSettings, parse_cron, parse_window

WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_DAY = timedelta(days=1)


class Occasion(NamedTuple):
    """One night of the calendar."""

    key: str
    """Unique key of the night: the local date, or the local minute of a cron line."""
    opens: datetime
    closes: datetime | None
    """End in UTC; None for a night without an end."""


class NightCalendar(Protocol):
    """A calendar of the nights on which cycles may run."""

    @property
    def zone(self) -> ZoneInfo: ...

    @property
    def text(self) -> str:
        """Description of the calendar for people, with the time zone."""

    def opening(self, start: datetime, end: datetime) -> Iterator[Occasion]:
        """Yields the calendar's nights that open from `start` (inclusive) to `end` (exclusive), ascending."""


@dataclass(frozen=True)
class NightlyWindow:
    """Calendar with a window on some days of the week. One past midnight belongs to the day on which it opens."""

    begins: time
    ends: time
    weekdays: tuple[str, ...]
    zone: ZoneInfo

    @property
    def text(self) -> str:
        days = "" if len(self.weekdays) == len(WEEKDAYS) else f" on {', '.join(self.weekdays)}"
        return f"{self.begins:%H:%M} to {self.ends:%H:%M}{days}, {zone_name(self.zone)}"

    def opening(self, start: datetime, end: datetime) -> Iterator[Occasion]:
        day, last = start.astimezone(self.zone).date() - _DAY, end.astimezone(self.zone).date() + _DAY
        while day <= last:
            found = self.on(day)
            if found is not None and start <= found.opens < end:
                yield found
            day += _DAY

    def on(self, day: date) -> Occasion | None:
        """Returns the night whose window opens on that local date, or None."""
        if WEEKDAYS[day.weekday()] not in self.weekdays or not has_date(self.zone, day):
            return None
        begins = datetime.combine(day, self.begins)
        ends = datetime.combine(day if self.ends > self.begins else day + _DAY, self.ends)
        opens, closes = first_moment(begins, self.zone), last_moment(ends, self.zone)
        if closes <= opens:  # all but its end is skipped
            closes = opens + (ends - begins)
        return Occasion(day.isoformat(), opens, closes)


def has_date(zone: ZoneInfo, day: date) -> bool:
    """True if clocks in the zone ever show that date."""
    return first_moment(datetime.combine(day, time()), zone).astimezone(zone).date() == day


def first_moment(wall: datetime, zone: ZoneInfo) -> datetime:
    """Returns the first instant (UTC) at which a clock in the zone shows that time. For a skipped time that is the end
    of the skip."""
    if _exists(wall, zone):
        return wall.replace(tzinfo=zone).astimezone(UTC)
    # fold 0 uses the offset before the skip and lands after it; fold 1 the reverse.
    after, before = (wall.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1))
    offset = before.astimezone(zone).utcoffset()
    while after - before > timedelta(seconds=1):
        middle = before + (after - before) // 2
        middle = middle.replace(microsecond=0)
        if middle.astimezone(zone).utcoffset() == offset:
            before = middle
        else:
            after = middle
    return after


def last_moment(wall: datetime, zone: ZoneInfo) -> datetime:
    """Returns the last instant (UTC) at which a clock in the zone shows that time; a skipped time uses the offset
    before the skip."""
    fold = 1 if _exists(wall, zone) else 0
    return wall.replace(tzinfo=zone, fold=fold).astimezone(UTC)


def _exists(wall: datetime, zone: ZoneInfo) -> bool:
    return wall.replace(tzinfo=zone).astimezone(UTC).astimezone(zone).replace(tzinfo=None) == wall


def machine_zone(localtime: Path = Path("/etc/localtime")) -> ZoneInfo:
    """Returns the time zone of this machine: `TZ`, else `/etc/localtime`, else UTC."""
    named = os.environ.get("TZ", "").removeprefix(":")
    if named and not named.startswith("/"):
        try:
            return ZoneInfo(named)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            pass  # a zone in POSIX's own form, which no file describes
    resolved = localtime.resolve().parts
    if "zoneinfo" in resolved:
        try:
            return ZoneInfo("/".join(resolved[resolved.index("zoneinfo") + 1 :]))
        except (ZoneInfoNotFoundError, ValueError, OSError):
            pass
    try:
        with localtime.open("rb") as file:
            return ZoneInfo.from_file(file, key="the machine's zone")
    except (OSError, ValueError):
        return ZoneInfo("UTC")


def zone_name(zone: ZoneInfo) -> str:
    return zone.key or "the machine's zone"


def occasions_at(
    calendar: NightCalendar, now: datetime, reach: timedelta, longest: timedelta = 2 * _DAY
) -> list[Occasion]:
    """Returns the nights of a calendar that are open now, ascending. One without an end is open for `reach`."""
    around = calendar.opening(now - max(longest, reach), now + timedelta(seconds=1))
    return [one for one in around if one.opens <= now < (one.closes or one.opens + reach)]


def coming(
    calendar: NightCalendar, now: datetime, count: int, within: timedelta = timedelta(days=400)
) -> Sequence[Occasion]:
    """Returns the next nights of a calendar that open after `now`, fewer than `count` if there are fewer `within`."""
    found: list[Occasion] = []
    start = now + timedelta(seconds=1)
    while len(found) < count and start < now + within:
        end = start + timedelta(days=8)
        for one in calendar.opening(start, end):
            found.append(one)
            if len(found) == count:
                break
        start = end
    return found


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
