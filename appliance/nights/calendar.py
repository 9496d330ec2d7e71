"""Which nights there are: windows of local time, as instants. Pure.

What always holds: each local date that exists has at most one window, and each that it has is of some length, also
where the clock is set forward or back in it. A beginning that the clock skips is the moment of the skip; an end that it
skips is as much later as the clock was set forward; a window that the skip would leave nothing of keeps its length. Of
an hour that comes twice a window has both: it opens at the first and closes at the second. A date that a zone leaves
out (Pacific/Apia, 2011-12-30) has no window.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import NamedTuple, Protocol
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_DAY = timedelta(days=1)


class Occasion(NamedTuple):
    """One night of the calendar."""

    key: str
    """The local date, or of a cron line the local minute: what no two nights share."""
    opens: datetime
    closes: datetime | None
    """UTC; None where it has no end."""


class NightCalendar(Protocol):
    """Says when nights are."""

    @property
    def zone(self) -> ZoneInfo: ...

    @property
    def text(self) -> str:
        """Says it in words, with the zone."""

    def opening(self, start: datetime, end: datetime) -> Iterator[Occasion]:
        """Those that open from `start` on and before `end`, ascending."""


@dataclass(frozen=True)
class NightlyWindow:
    """Windows on some days of the week. Those past midnight belong to the day on which they open."""

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
        """The window that opens on that local date; None where there is none."""
        if WEEKDAYS[day.weekday()] not in self.weekdays or not has_date(self.zone, day):
            return None
        begins = datetime.combine(day, self.begins)
        ends = datetime.combine(day if self.ends > self.begins else day + _DAY, self.ends)
        opens, closes = first_moment(begins, self.zone), last_moment(ends, self.zone)
        if closes <= opens:  # it lies in the skip with all but its end
            closes = opens + (ends - begins)
        return Occasion(day.isoformat(), opens, closes)


def has_date(zone: ZoneInfo, day: date) -> bool:
    """Whether a clock there ever shows that date."""
    return first_moment(datetime.combine(day, time()), zone).astimezone(zone).date() == day


def first_moment(wall: datetime, zone: ZoneInfo) -> datetime:
    """The first instant at which a clock there shows that time, or a later one where it is skipped; UTC."""
    if _exists(wall, zone):
        return wall.replace(tzinfo=zone).astimezone(UTC)
    # Read by the offset of before the skip it lies behind the skip, by the offset of after it before the skip.
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
    """The last instant at which a clock there shows that time; one that is skipped counts by the offset before; UTC."""
    fold = 1 if _exists(wall, zone) else 0
    return wall.replace(tzinfo=zone, fold=fold).astimezone(UTC)


def _exists(wall: datetime, zone: ZoneInfo) -> bool:
    return wall.replace(tzinfo=zone).astimezone(UTC).astimezone(zone).replace(tzinfo=None) == wall


def machine_zone(localtime: Path = Path("/etc/localtime")) -> ZoneInfo:
    """The zone of this machine: `TZ`, else its file, else UTC."""
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
    """Those that are open: each until it closes, and one without an end for `reach`; ascending."""
    around = calendar.opening(now - max(longest, reach), now + timedelta(seconds=1))
    return [one for one in around if one.opens <= now < (one.closes or one.opens + reach)]


def coming(
    calendar: NightCalendar, now: datetime, count: int, within: timedelta = timedelta(days=400)
) -> Sequence[Occasion]:
    """The next ones that open after `now`; fewer where there are fewer `within`."""
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
