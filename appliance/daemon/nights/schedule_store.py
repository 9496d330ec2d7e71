"""Records nights and the state of the schedule, including pauses and missed nights.

Invariants: a date has one night; one that passed unobserved is recorded as missed, with the reason and an event; a new
reason to wait is an event, once.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from appliance.daemon.contract import EventLog
from appliance.ledger.sqlite import SqliteLedger
from appliance.nights.calendar import NightCalendar, Occasion, coming, occasions_at
from appliance.nights.settings import ScheduleSettings
from appliance.records.nights import Night, NightState, ScheduleState

CRON_REACH = timedelta(hours=1)
"""Time after its minute within which a night without an end may begin."""
MADE_UP = timedelta(hours=5, minutes=30)
"""Longest duration of a made-up night without an end."""
REMEMBERED = 62
"""Number of newest nights examined."""
MOST_MISSED = 31
NOBODY_LOOKED = "the daemon did not run, or the clock was set forward"
TOLD_WITHIN = timedelta(days=1)
"""Maximum age of an unreported end of a night that is still reported."""


class NightBook:
    """Records of nights and of the schedule's state in the ledger; thread-safe. `lock` is held across related calls."""

    def __init__(
        self,
        ledger: SqliteLedger,
        rules: ScheduleSettings,
        calendar: NightCalendar,
        events: EventLog,
        now: Callable[[], str],
    ) -> None:
        self.lock = threading.RLock()
        self._ledger, self._rules, self._calendar = ledger, rules, calendar
        self._events, self._now = events, now

    def moment(self) -> datetime:
        return time_of(self._now())

    def nights(self, limit: int) -> list[Night]:
        """Returns recorded nights, newest date first."""
        return sorted(self._ledger.nights(limit), key=lambda night: night.key, reverse=True)

    def state(self) -> ScheduleState:
        """Returns the schedule's recorded state, or the initial one before the first look."""
        return self._ledger.schedule() or ScheduleState(calendar=self._calendar.text, since=self._now())

    def coming(self, count: int) -> list[Occasion]:
        """Returns the next nights of the calendar, except those that a pause covers."""
        state, now = self._ledger.schedule(), self.moment()
        paused = state is not None and state.paused
        if not self._rules.enabled or (paused and state is not None and not state.until):
            return []
        start = max(now, datetime.fromisoformat(state.until)) if paused and state is not None else now
        return list(coming(self._calendar, start, count))

    # requests of people
    def pause(self, until: str = "") -> ScheduleState:
        """Pauses all nights until that time, or until `resume`, and returns the schedule's new state."""
        changed = self.change(paused=True, until=until)
        self._events.add("schedule", f"nights are paused{f' until {until}' if until else ''} by a person")
        return changed

    def resume(self) -> ScheduleState:
        changed = self.change(paused=False, until="")
        self._events.add("schedule", "nights resume: a person ended the pause")
        return changed

    def reported(self, key: str) -> None:
        """Marks the end of a night as reported to people, or as unreportable."""
        with self.lock:
            night = self._ledger.night(key)
            if night is not None and night.state.ended:
                self._ledger.put_night(night.model_copy(update={"reported": True}))

    def current_state(self, now: datetime) -> ScheduleState:
        """Returns the schedule's state, restarted for a changed calendar; ends an expired pause. Records a changed
        state."""
        state = self._ledger.schedule()
        changed = state
        if state is None or state.calendar != self._calendar.text:
            changed = self.state().model_copy(update={"calendar": self._calendar.text, "since": text_of(now)})
        assert changed is not None
        if time_of(changed.since) > now:
            changed = changed.model_copy(update={"since": text_of(now)})
        if changed.paused and changed.until and time_of(changed.until) <= now:
            changed = changed.model_copy(update={"paused": False, "until": ""})
            self._events.add("schedule", "nights resume: the pause is over")
        if changed != state:
            self._ledger.put_schedule(changed)
        return changed

    def change(self, **changes: object) -> ScheduleState:
        with self.lock:
            changed = self.state().model_copy(update=changes)
            self._ledger.put_schedule(changed)
            return changed

    def released(self) -> str:
        state = self._ledger.schedule()
        return state.released if state is not None else ""

    def put(self, night: Night, **changes: object) -> Night:
        """Records a night with these changes and returns it; a new reason to wait is an event."""
        changed = night.model_copy(update=changes)
        if changed == night and night.updated:
            return night
        if changed.reason and changed.reason != night.reason and not changed.state.ended:
            self._events.add("schedule", f"the night of {night.key} waits: {changed.reason}")
        changed = changed.model_copy(update={"updated": self._now()})
        self._ledger.put_night(changed)
        return changed

    def untold(self, now: datetime) -> list[Night]:
        """Returns recently ended nights of which people were not notified before the daemon ended."""
        found = (night for night in self._ledger.nights(REMEMBERED) if night.state.ended and not night.reported)
        return [night for night in found if abs(now - time_of(night.updated)) < TOLD_WITHIN]

    def to_decide(self, now: datetime) -> list[Night]:
        """Returns the nights to begin, hold or end now. These are the unended ones, and at most one that opens now or
        is made up."""
        recorded = self._ledger.nights(REMEMBERED)
        by_key = {night.key: night for night in recorded}
        found = [night for night in recorded if not night.state.ended]
        for one in occasions_at(self._calendar, now, CRON_REACH):
            night = by_key.get(one.key)
            if night is None and all(before.closes and time_of(before.closes) <= now for before in found):
                night = Night(
                    key=one.key, opens=text_of(one.opens), closes=text_of(one.closes), state=NightState.OPEN, updated=""
                )
                found.append(night)
                break
            if night is not None and night.state is NightState.MISSED and not night.begins and not found:
                found.append(night)
                break
        if not found and self._rules.catch_up == "next_start":
            found = self._to_make_up(recorded, now)
        return sorted(found, key=lambda night: night.key)

    def _to_make_up(self, recorded: list[Night], now: datetime) -> list[Night]:
        """Returns the newest night, reopened from now on, if it was missed unintentionally; this is an event."""
        newest = max(recorded, key=lambda night: night.key, default=None)
        if newest is None or newest.state is not NightState.MISSED or newest.begins or newest.made_up or newest.paused:
            return []
        length = time_of(newest.closes) - time_of(newest.opens) if newest.closes else MADE_UP
        again = {"state": NightState.OPEN, "made_up": True, "opens": text_of(now), "closes": text_of(now + length)}
        self._events.add("schedule", f"the night of {newest.key} was missed and is made up now")
        return [newest.model_copy(update=again)]

    def record_missed(self, state: ScheduleState, now: datetime) -> list[Night]:
        """Records the nights that passed unobserved as missed, and returns them, ascending; each is an event."""
        known = self._ledger.nights(REMEMBERED)
        keys = {night.key for night in known}
        opened = [moment for night in known if (moment := time_of(night.opens)) <= now]
        start = max([time_of(state.since), *([max(opened)] if opened else [])])
        missed = [
            one
            for one in self._calendar.opening(start, now)
            if (one.closes or one.opens + CRON_REACH) <= now and one.key not in keys
        ]
        if len(missed) > MOST_MISSED:
            self._events.add(
                "schedule", f"{len(missed) - MOST_MISSED} nights before {missed[-MOST_MISSED].key} were missed"
            )
        recorded = []
        for one in missed[-MOST_MISSED:]:
            under_way = next(
                (night for night in known if not night.state.ended and not _is_over(night, one.opens)), None
            )
            reason = f"the night of {under_way.key} was not over" if under_way is not None else NOBODY_LOOKED
            night = Night(
                key=one.key, opens=text_of(one.opens), closes=text_of(one.closes), state=NightState.OPEN, updated=""
            )
            recorded.append(self.put(night, state=NightState.MISSED, reason=reason))
            self._events.add("schedule", f"the night of {one.key} was missed: {reason}")
        return recorded


def _is_over(night: Night, moment: datetime) -> bool:
    """True if the night's window opens after that moment, or had closed before it."""
    return time_of(night.opens) > moment or (bool(night.closes) and time_of(night.closes) <= moment)


def time_of(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


def text_of(moment: datetime | None) -> str:
    return "" if moment is None else moment.astimezone(UTC).isoformat(timespec="seconds")
