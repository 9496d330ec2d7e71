"""The clock says when a cycle is due, once, and is otherwise quiet."""

from __future__ import annotations

import threading
from datetime import UTC, datetime

from appliance.config import ScheduleSettings
from appliance.daemon.schedule import ScheduleClock
from appliance.ledger.sqlite import SqliteLedger
from appliance.records.events import Event


def test_the_next_time_is_that_of_the_cron_line_in_its_time_zone() -> None:
    clock = ScheduleClock(ScheduleSettings(cron="30 2 * * *", timezone="Asia/Tokyo"), lambda: None)
    assert clock.next_time is None
    clock.start()
    try:
        assert datetime.fromisoformat(clock.next_time).astimezone(UTC).strftime("%H:%M") == "17:30"
    finally:
        clock.close()


def test_when_the_time_has_come_it_says_so_once() -> None:
    events = threading.Semaphore(0)
    clock = ScheduleClock(ScheduleSettings(cron="0 2 1 1 *"), events.release)
    clock.start()
    try:
        clock._job.modify(next_run_time=datetime.now(UTC))
        assert events.acquire(timeout=20)
        assert not events.acquire(timeout=0.3)
    finally:
        clock.close()


def test_a_schedule_that_is_switched_off_is_never_due() -> None:
    clock = ScheduleClock(ScheduleSettings(enabled=False, cron="* * * * *"), lambda: None)
    clock.start()
    assert clock.next_time is None
    clock.close()


def test_the_ledger_knows_the_newest_event(tmp_path) -> None:
    with SqliteLedger(tmp_path / "ledger.sqlite3") as ledger:
        assert ledger.newest_event() == 0
        for number in range(1, 42):
            ledger.put_event(Event(kind="test", text=str(number), created="2026-01-02T03:04:05+00:00"))
        assert ledger.newest_event() == 41
