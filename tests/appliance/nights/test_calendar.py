"""Each local date has its one night, also where clocks are set forward or back."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from property_budget import examples
from pydantic import ValidationError
from tables import table

from appliance.nights.calendar import (
    WEEKDAYS,
    CronTimes,
    NightlyWindow,
    calendar_of,
    coming,
    machine_zone,
    occasions_at,
)
from appliance.nights.settings import ScheduleSettings

ZONES = ("Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Sao_Paulo", "Africa/Cairo", "UTC")
TIMES = st.times().map(lambda found: found.replace(second=0, microsecond=0))


def window(text: str, zone: str, days: tuple[str, ...] = WEEKDAYS) -> NightlyWindow:
    made = calendar_of(ScheduleSettings(nightly=text, timezone=zone, weekdays=days))
    assert isinstance(made, NightlyWindow)
    return made


def local(moment: datetime, zone: str) -> str:
    return moment.astimezone(ZoneInfo(zone)).strftime("%d %H:%M%z")


@table(
    ("zone", "day", "text", "opens", "closes"),
    [
        ("Europe/Berlin", date(2026, 3, 29), "02:10-02:50", "29 03:00+0200", "29 03:50+0200"),
        ("Europe/Berlin", date(2026, 3, 29), "02:30-03:15", "29 03:00+0200", "29 03:15+0200"),
        ("Europe/Berlin", date(2026, 3, 29), "02:30-03:00", "29 03:00+0200", "29 03:30+0200"),
        ("Europe/Berlin", date(2026, 10, 25), "02:10-02:50", "25 02:10+0200", "25 02:50+0100"),
        ("Europe/Berlin", date(2026, 3, 28), "22:00-06:00", "28 22:00+0100", "29 06:00+0200"),
        ("America/New_York", date(2026, 3, 8), "02:30-06:30", "08 03:00-0400", "08 06:30-0400"),
        ("America/New_York", date(2026, 11, 1), "01:00-06:30", "01 01:00-0400", "01 06:30-0500"),
        ("Australia/Lord_Howe", date(2026, 10, 4), "02:10-02:50", "04 02:30+1100", "04 02:50+1100"),
        ("Australia/Lord_Howe", date(2026, 4, 5), "01:40-06:00", "05 01:40+1100", "05 06:00+1030"),
    ],
)
def test_a_night_in_a_skipped_or_doubled_hour_is_one_window(zone, day, text, opens, closes) -> None:
    found = window(text, zone).on(day)
    assert found is not None
    assert (local(found.opens, zone), local(found.closes, zone)) == (opens, closes)


def test_a_date_that_a_zone_left_out_has_no_night() -> None:
    keys = [one.key for one in coming(window("01:00-06:30", "Pacific/Apia"), datetime(2011, 12, 29, tzinfo=UTC), 3)]
    assert keys == ["2011-12-29", "2011-12-31", "2012-01-01"]


@settings(max_examples=examples(150), deadline=None)
@given(
    begins=TIMES,
    ends=TIMES,
    zone=st.sampled_from(ZONES),
    first=st.dates(date(2024, 1, 1), date(2027, 12, 1)),
    days=st.sets(st.sampled_from(WEEKDAYS), min_size=1),
)
def test_every_date_that_is_wanted_has_one_window_of_some_length(begins, ends, zone, first, days) -> None:
    if begins == ends:
        return
    made = NightlyWindow(begins, ends, tuple(days), ZoneInfo(zone))
    start = datetime.combine(first, time(12), ZoneInfo(zone)).astimezone(UTC)
    end = datetime.combine(first + timedelta(days=30), time(12), ZoneInfo(zone)).astimezone(UTC)
    found = list(made.opening(start, end))
    keys = [one.key for one in found]
    wanted = [first + timedelta(days=n) for n in range(31)]
    assert set(keys) >= {day.isoformat() for day in wanted[1:-1] if WEEKDAYS[day.weekday()] in days}
    assert len(set(keys)) == len(keys)
    assert all(timedelta(0) < one.closes - one.opens <= timedelta(hours=26) for one in found)
    assert [one.opens for one in found] == sorted(one.opens for one in found)
    for one in found:
        assert one in occasions_at(made, one.opens, timedelta(hours=1))
        assert one not in occasions_at(made, one.closes, timedelta(hours=1))


def test_a_window_past_midnight_belongs_to_the_day_on_which_it_opens() -> None:
    made = window("22:00-06:00", "Europe/Berlin", ("fri",))
    (found,) = occasions_at(made, datetime(2026, 11, 28, 2, tzinfo=UTC), timedelta(hours=1))
    assert found.key == "2026-11-27"
    assert [one.key for one in coming(made, found.opens, 2)] == ["2026-12-04", "2026-12-11"]


def test_a_cron_line_has_a_doubled_minute_once_and_a_skipped_one_too() -> None:
    made = CronTimes("30 2 * * *", ZoneInfo("Europe/Berlin"))
    for month, day in ((10, 24), (3, 28)):
        start = datetime(2026, month, day, tzinfo=UTC)
        found = [one.key[:10] for one in made.opening(start, start + timedelta(days=3))]
        assert found == sorted(set(found))
        assert len(found) == 3


@pytest.mark.parametrize(
    ("zone", "line", "day", "opens"),
    [
        ("America/Santiago", "0 0 * * *", "2026-09-06", "2026-09-06T04:00+00:00"),
        ("America/Havana", "30 0 * * *", "2026-03-08", "2026-03-08T05:00+00:00"),
        ("America/Godthab", "30 23 * * *", "2026-03-28", "2026-03-29T01:00+00:00"),
    ],
)
def test_a_cron_line_has_a_night_on_a_date_whose_midnight_is_skipped(
    zone: str, line: str, day: str, opens: str
) -> None:
    made = CronTimes(line, ZoneInfo(zone))
    start = datetime.fromisoformat(day).replace(tzinfo=UTC) - timedelta(days=1)
    found = {one.key[:10]: one.opens for one in made.opening(start, start + timedelta(days=3))}
    assert found[day] == datetime.fromisoformat(opens)
    again = made.opening(found[day], found[day] + timedelta(minutes=1))
    assert [one.opens for one in again] == [found[day]]  # also where one asks from the skip on


def test_a_skip_has_one_night_of_a_line_for_every_minute_and_a_date_that_is_left_out_none() -> None:
    skip = datetime(2026, 3, 29, 1, tzinfo=UTC)
    found = list(CronTimes("* * * * *", ZoneInfo("Europe/Berlin")).opening(skip, skip + timedelta(minutes=3)))
    assert [one.opens for one in found] == [skip, skip + timedelta(minutes=1), skip + timedelta(minutes=2)]
    apia = CronTimes("0 2 * * *", ZoneInfo("Pacific/Apia"))
    start = datetime(2011, 12, 29, tzinfo=UTC)
    assert [one.key[8:10] for one in apia.opening(start, start + timedelta(days=2))] == ["29", "31"]


def test_a_date_without_its_noon_has_a_window() -> None:
    assert window("22:00-06:00", "Africa/Khartoum").on(date(2000, 1, 15)) is not None


def test_what_is_no_window_is_refused_with_how_to_write_one() -> None:
    for wrong in ("1:00-6:30", "25:00-06:00", "01:00", "01:00-01:00", "", "01:00-06:60"):
        with pytest.raises(ValidationError, match=r"01:00-06:30|another end"):
            ScheduleSettings(nightly=wrong)
    with pytest.raises(ValidationError, match="set one of them"):
        ScheduleSettings(nightly="01:00-02:00", cron="0 2 * * *")
    with pytest.raises(ValidationError, match="unknown time zone"):
        ScheduleSettings(timezone="Middle/Earth")
    with pytest.raises(ValidationError, match="at least one day"):
        ScheduleSettings(weekdays=())


def test_the_machine_s_zone_is_read_from_its_file(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    assert machine_zone().key == "Asia/Tokyo"
    monkeypatch.delenv("TZ")
    (tmp_path / "localtime").symlink_to(tmp_path / "zoneinfo" / "Asia" / "Tokyo")
    assert machine_zone(tmp_path / "localtime").key == "Asia/Tokyo"
    assert machine_zone(tmp_path / "none").key == "UTC"
