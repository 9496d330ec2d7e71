"""Nights of a real core on a fake clock: each date once, whatever is restarted and however the clock is set."""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Thread

import pytest
from daemon_kit import dispatched, until

from appliance.config.configuration import Settings
from appliance.daemon.api.read_models import schedule_view, status_of, until_time
from appliance.daemon.contract import BrokenError, RequestError
from appliance.daemon.coordination.core import Core
from appliance.nights.machine import MachineSnapshot
from appliance.records.cycles import CycleState
from appliance.records.nights import NightState

pytestmark = pytest.mark.usefixtures("lent")
CHILD = Path(__file__).parents[1] / "child_worker.py"
NIGHT = datetime(2026, 11, 24, 1, tzinfo=UTC)


class Clock:
    """A machine: its clock, and who uses it."""

    def __init__(self, data: Path) -> None:
        self.data = data
        self.at = NIGHT - timedelta(hours=13)
        self.seen = MachineSnapshot(gpu_users=())

    def now(self) -> str:
        return self.at.isoformat(timespec="milliseconds")

    def core(self, mode: str = "finish", **schedule: object) -> Core:
        rules = {"nightly": "01:00-06:30", "timezone": "UTC", **schedule}
        worker = [sys.executable, str(CHILD), mode]
        return Core(Settings(data=self.data, schedule=rules), now=self.now, worker=worker, machine=lambda: self.seen)

    def look(self, core: Core, at: datetime | None = None) -> dict[str, NightState]:
        """Sets the clock, and looks at the schedule: how the nights then are."""
        self.at = at or self.at
        core.nights.look()
        return {night.key: night.state for night in core.ledger.nights()}


@pytest.fixture
def clock(data) -> Clock:
    return Clock(data)


def end(core: Core) -> str:
    """The unfinished cycle ends."""
    cycle = core.cycles.unfinished()
    assert cycle is not None
    core.ledger.put_cycle(cycle.model_copy(update={"state": CycleState.DONE, "phase": "done"}))
    return cycle.id


def refuse(*args: object, **more: object) -> None:
    raise BrokenError("the disk is full", hint="free some")


def said(core: Core, part: str) -> list[str]:
    return [event.text for _, event in core.ledger.events(limit=1000) if part in event.text]


def test_a_date_has_one_night_over_restarts_and_a_clock_that_is_set_back_and_forward(clock) -> None:
    with clock.core() as core:
        assert clock.look(core) == {}
        assert clock.look(core, NIGHT) == {"2026-11-24": NightState.RUNNING}
        first = end(core)
        assert clock.look(core) == {"2026-11-24": NightState.DONE}
    for at in (NIGHT, NIGHT + timedelta(hours=5), NIGHT - timedelta(days=1), NIGHT):
        with clock.core() as core:
            nights = clock.look(core, at)
            assert nights["2026-11-24"] is NightState.DONE
            if core.cycles.unfinished() is not None:
                assert at.day == 23
                end(core)
    with clock.core() as core:
        clock.look(core, NIGHT + timedelta(hours=6))
        later = clock.look(core, NIGHT + timedelta(days=1, hours=12))  # the clock was set a day forward
        assert later["2026-11-25"] is NightState.MISSED
        clock.look(core, NIGHT + timedelta(hours=12))  # and is put right
        assert clock.look(core, NIGHT + timedelta(days=1))["2026-11-25"] is NightState.RUNNING
        end(core)
        assert clock.look(core)["2026-11-25"] is NightState.DONE
        assert [night.cycle for night in core.ledger.nights()].count(first) == 1


def test_nights_that_passed_while_the_daemon_was_down_are_on_record_with_the_reason(clock) -> None:
    with clock.core() as core:
        clock.look(core)
    with clock.core() as core:
        found = clock.look(core, NIGHT + timedelta(days=3, hours=10))
        assert set(found.values()) == {NightState.MISSED}
        assert sorted(found) == ["2026-11-24", "2026-11-25", "2026-11-26", "2026-11-27"]
        assert len(said(core, "the daemon did not run")) == 4
        clock.look(core)
        assert len(said(core, "the daemon did not run")) == 4
        assert core.ledger.cycles() == []


def test_of_nights_that_were_missed_while_the_daemon_was_down_the_newest_is_told_once(clock) -> None:
    with clock.core() as core:
        clock.look(core)
    told: list[str] = []
    for _ in range(2):
        with clock.core() as core:
            core.nights.ended = lambda night: (told.append(night.key), core.nights.book.reported(night.key))
            clock.look(core, NIGHT + timedelta(days=3, hours=10))
            clock.look(core)
    assert told == ["2026-11-27"]
    with clock.core(catch_up="next_start") as core:
        core.nights.ended = lambda night: told.append(night.key)
        clock.look(core, NIGHT + timedelta(days=4, hours=10))
        assert told == ["2026-11-27"]  # it is made up
        end(core)
        clock.look(core)
    assert told == ["2026-11-27", "2026-11-28"]


def test_a_missed_night_is_made_up_once_where_that_is_configured(clock) -> None:
    with clock.core() as core:
        clock.look(core)
    with clock.core(catch_up="next_start") as core:
        noon = NIGHT + timedelta(hours=11)
        assert clock.look(core, noon) == {"2026-11-24": NightState.RUNNING}
        assert core.nights.working
        assert clock.look(core, noon + timedelta(hours=6)) == {"2026-11-24": NightState.STOPPED}
        assert core.nights.holds(core.cycles.unfinished().id)
        assert clock.look(core, noon + timedelta(hours=7)) == {"2026-11-24": NightState.STOPPED}
        found = clock.look(core, NIGHT + timedelta(days=1))
        assert found["2026-11-25"] is NightState.RUNNING
        assert len(core.ledger.cycles()) == 1  # it goes on with what was not finished


def test_without_catching_up_a_night_that_could_not_begin_on_time_is_given_up(clock) -> None:
    clock.seen = MachineSnapshot(gpu_users=("game (process 7)",))
    with clock.core(catch_up="none") as core:
        clock.look(core)
        assert clock.look(core, NIGHT) == {"2026-11-24": NightState.OPEN}
        assert "a GPU" in core.nights.why
        clock.seen = MachineSnapshot(gpu_users=())
        clock.look(core, NIGHT + timedelta(minutes=4))
        assert clock.look(core, NIGHT + timedelta(minutes=40)) == {"2026-11-24": NightState.MISSED}
        assert core.ledger.cycles() == []


def test_a_night_ends_with_its_window_and_its_cycle_goes_on_with_the_next(clock) -> None:
    with clock.core("hang", stop_within=1.0) as core, dispatched(core) as dispatcher:
        clock.look(core)
        clock.look(core, NIGHT)
        dispatcher.wake()
        cycle = core.cycles.unfinished()
        until(lambda: core.supervisor.process.pid is not None)
        found = clock.look(core, NIGHT + timedelta(hours=5, minutes=30))
        assert found == {"2026-11-24": NightState.STOPPED}
        assert len(said(core, "must stop")) == 1
        assert core.supervisor.works_on(cycle.id)
        clock.look(core, NIGHT + timedelta(hours=5, minutes=32))  # no step has ended: it has had its time
        until(lambda: not core.supervisor.works_on(cycle.id))
        assert core.ledger.cycle(cycle.id).state is CycleState.RUNNING
        clock.look(core, NIGHT + timedelta(days=1))
        dispatcher.wake()
        until(lambda: core.supervisor.process.pid is not None)
        assert [one.id for one in core.ledger.cycles()] == [cycle.id]
        clock.seen = MachineSnapshot(gpu_users=("game (process 7)",))
        clock.look(core, NIGHT + timedelta(days=1, hours=1))  # at once
        until(lambda: not core.supervisor.works_on(cycle.id))
        assert core.ledger.night("2026-11-25").state is NightState.HELD


def test_a_person_s_cycle_is_never_held_and_a_night_waits_for_it(clock) -> None:
    with clock.core() as core:
        clock.look(core)
        mine = core.cycles.start("night")
        assert core.nights.holds(mine.id) == ""
        assert clock.look(core, NIGHT) == {"2026-11-24": NightState.OPEN}
        assert core.nights.holds(mine.id) == ""
        end(core)
        assert clock.look(core, NIGHT + timedelta(hours=1)) == {"2026-11-24": NightState.RUNNING}
        clock.look(core, NIGHT + timedelta(hours=9))
        left = core.cycles.unfinished()
        assert core.nights.holds(left.id)
        core.nights.release(left.id)  # `assay cycle start` by day
        assert core.nights.holds(left.id) == ""


def test_a_night_that_was_killed_between_its_two_writes_knows_its_cycle(clock) -> None:
    with clock.core() as core:
        clock.look(core)
        clock.look(core, NIGHT)
        cycle = core.cycles.unfinished()
        night = core.ledger.night("2026-11-24")
        core.ledger.put_night(night.model_copy(update={"cycle": "", "state": NightState.OPEN}))
    with clock.core() as core:
        clock.look(core, NIGHT + timedelta(minutes=1))
        assert core.ledger.night("2026-11-24").cycle == cycle.id
        assert [one.id for one in core.ledger.cycles()] == [cycle.id]


def test_what_a_person_does_while_a_night_collects_is_heard_and_no_cycle_of_theirs_becomes_its_own(clock) -> None:
    with clock.core() as core:
        clock.look(core)
        mine: list[str] = []
        core.nights.before = lambda: mine.append(core.cycles.start("night").id)
        assert clock.look(core, NIGHT) == {"2026-11-24": NightState.OPEN}
        clock.look(core, NIGHT + timedelta(hours=6))
        assert core.nights.holds(mine[0]) == ""
        assert core.ledger.night("2026-11-24").state is NightState.MISSED
        end(core)

        def pause() -> None:
            person = Thread(target=core.nights.book.pause)
            person.start()
            person.join(20.0)
            assert not person.is_alive()

        core.nights.before = pause
        assert clock.look(core, NIGHT + timedelta(days=1))["2026-11-25"] is NightState.OPEN
        assert len(core.ledger.cycles()) == 1
        core.nights.book.resume()
        core.nights.before = lambda: pytest.fail("it was done already")
        assert clock.look(core, NIGHT + timedelta(days=1, minutes=1))["2026-11-25"] is NightState.RUNNING


def test_a_cycle_that_a_person_starts_when_a_night_could_not_is_the_person_s(clock, monkeypatch) -> None:
    with clock.core() as core:
        clock.look(core)
        with monkeypatch.context() as broken:
            broken.setattr(core.cycles, "start", refuse)
            clock.look(core, NIGHT)
        mine = core.cycles.start("night")
        clock.look(core, NIGHT + timedelta(minutes=1))
        assert core.ledger.night("2026-11-24").cycle == ""
        clock.look(core, NIGHT + timedelta(hours=6))
        assert core.nights.holds(mine.id) == ""


def test_what_counts_as_work_is_neither_collecting_nor_lost_where_a_held_night_ends_its_step(
    clock, monkeypatch
) -> None:
    with clock.core(max_energy=100.0) as core:
        clock.look(core)

        def collect() -> None:
            clock.at += timedelta(minutes=9)
            clock.seen = MachineSnapshot(gpu_users=(), joules=500.0)

        core.nights.before = collect
        clock.seen = MachineSnapshot(gpu_users=(), joules=0.0)
        clock.look(core, NIGHT)
        monkeypatch.setattr(core.supervisor, "works_on", lambda cycle: True)
        for minutes, joules in ((10, 560.0), (11, 620.0)):
            clock.seen = MachineSnapshot(gpu_users=(), joules=joules)
            clock.look(core, NIGHT + timedelta(minutes=minutes))
            core.nights.book.pause()
        clock.seen = MachineSnapshot(gpu_users=(), joules=680.0)
        clock.look(core, NIGHT + timedelta(minutes=12))
        night = core.ledger.night("2026-11-24")
        assert (night.state, night.seconds, night.joules) == (NightState.HELD, 180.0, 180.0)


def test_a_night_that_began_by_a_clock_that_ran_ahead_keeps_no_date_from_its_own(clock) -> None:
    with clock.core() as core:
        clock.look(core)
        clock.look(core, NIGHT + timedelta(days=30))
        ahead = core.cycles.unfinished()
        for days in range(3):
            for minutes in range(2):
                clock.look(core, NIGHT + timedelta(days=days, minutes=minutes))
            night = core.ledger.night(f"2026-11-{24 + days}")
            assert night.state is NightState.RUNNING
            if not days:
                assert night.cycle == ahead.id
            end(core)
            clock.look(core, NIGHT + timedelta(days=days, hours=1))
        assert core.ledger.night("2026-12-24").state is NightState.STOPPED


def test_a_cron_night_that_the_one_before_kept_out_is_missed_for_that(clock) -> None:
    with clock.core(nightly=None, cron="0 1 * * *") as core:
        clock.look(core)
        clock.look(core, NIGHT)
        clock.look(core, NIGHT + timedelta(hours=26))
        assert core.ledger.night("2026-11-25T01:00").reason == "the night of 2026-11-24T01:00 was not over"


def test_a_pause_holds_nights_until_its_end_or_a_person_s_word(clock) -> None:
    with clock.core() as core:
        clock.look(core)
        core.nights.book.pause(until_time("2026-11-24T04:00+01:00", clock.now()))
        assert clock.look(core, NIGHT) == {"2026-11-24": NightState.OPEN}
        assert "paused until 2026-11-24T03:00" in schedule_view(core, 3).holds
        assert clock.look(core, NIGHT + timedelta(hours=2, minutes=1)) == {"2026-11-24": NightState.RUNNING}
        core.nights.book.pause()
        assert clock.look(core, NIGHT + timedelta(hours=3)) == {"2026-11-24": NightState.HELD}
        assert status_of(core).nights == "nights are paused by a person"
        assert schedule_view(core, 3).coming == ()
        core.nights.book.resume()
        assert clock.look(core, NIGHT + timedelta(hours=4)) == {"2026-11-24": NightState.RUNNING}
        assert status_of(core).nights == ""
        assert [one.key for one in schedule_view(core, 2).coming] == ["2026-11-25", "2026-11-26"]


@pytest.mark.parametrize("until", ["9999-12-31T23:59:59+00:00", "9999-12-31T23:59:59-12:00", "2200-01-01T00:00+01:00"])
def test_a_pause_that_no_calendar_reaches_is_refused_with_the_one_to_ask_for(clock, until: str) -> None:
    with pytest.raises(RequestError, match="days away") as refused:
        until_time(until, clock.now())
    assert "without a time" in refused.value.hint
    with clock.core() as core:
        core.nights.book.pause(until_time("2126-01-01T00:00+00:00", clock.now()))
        assert schedule_view(core, 3).coming[0].key == "2126-01-01"
        assert core.nights.next_time is not None


def test_a_schedule_that_is_switched_off_begins_and_misses_nothing(clock) -> None:
    with clock.core() as core:
        clock.look(core)
    with clock.core(enabled=False) as core:
        assert clock.look(core, NIGHT) == {}
        assert core.nights.next_time is None
    with clock.core() as core:
        assert clock.look(core, NIGHT + timedelta(days=2, hours=8)) == {}


def test_what_cannot_start_is_tried_again_while_the_window_is_open(clock, monkeypatch) -> None:
    with clock.core() as core:
        clock.look(core)
        started = core.cycles.start
        monkeypatch.setattr(core.cycles, "start", refuse)
        assert clock.look(core, NIGHT) == {"2026-11-24": NightState.OPEN}
        clock.look(core, NIGHT + timedelta(minutes=1))
        assert len(said(core, "it cannot start: the disk is full; free some")) == 1
        monkeypatch.setattr(core.cycles, "start", started)
        assert clock.look(core, NIGHT + timedelta(minutes=2)) == {"2026-11-24": NightState.RUNNING}
