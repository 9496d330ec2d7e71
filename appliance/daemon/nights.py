"""Nights: begins, holds and ends them as `appliance.nights.decide` says, and keeps each on record.

What always holds: a date that has a cycle never gets a second one, whatever is restarted and however the clock is set;
a night that did not run is on record with the reason, and an event. A cycle that a night began works only while a night
lets it; one that a person began is never stopped here. What has to stop stops at the end of its step, or after
`schedule.stop_within`; at once where somebody else computes on a GPU.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from appliance.config_layers import ConfigError
from appliance.daemon.cycles import Cycles
from appliance.daemon.errors import BrokenError
from appliance.daemon.events import EventLog
from appliance.ledger.ledger import LedgerError
from appliance.ledger.sqlite import SqliteLedger
from appliance.nights.calendar import NightCalendar, Occasion, coming, occasions_at
from appliance.nights.cron import calendar_of
from appliance.nights.decide import Action, NightFacts, NightStep, decide
from appliance.nights.idle import MachineSnapshot, use_of
from appliance.nights.settings import ScheduleSettings
from appliance.records.nights import Night, NightState, ScheduleState
from runtime.errors import SandboxError

LOOK_SECONDS = 30.0
"""Between two looks while a window is open; the machine's clock may be set meanwhile."""
STOPPING_SECONDS = 1.0
"""Between two looks while a worker is to end at the end of its step."""
LATE = timedelta(minutes=30)
"""After which a night that may not catch up is late."""
CRON_REACH = timedelta(hours=1)
"""How long after its minute a night without an end may still begin."""
MADE_UP = timedelta(hours=5, minutes=30)
"""How long a made up night without an end works at most."""
LONGEST_LOOK = timedelta(minutes=10)
"""The most that counts as work between two looks: the machine may have slept."""
REMEMBERED = 62
"""Nights that are looked at, newest first."""
MOST_MISSED = 31
TOLD_WITHIN = timedelta(days=1)
"""How old the end of a night may be that nobody was told of yet."""
ASKED_AGAIN = timedelta(seconds=20)
"""After which a worker is told again to end: it may have begun just then."""
NOTHING_SEEN = MachineSnapshot()
BOUNDARIES = frozenset({"step", "watch", "evaluation", "phase"})
"""Kinds of events that a worker writes between two steps."""


@dataclass
class _Stop:
    cycle: str
    after: int
    """The newest event when it was asked for."""
    since: datetime
    by: datetime
    asked: datetime | None = None
    """When the worker was last told to end."""


class Nights:
    """Methods may be called from any thread. `look` does what is due, and gives the seconds until the next one; `ended`
    gets a night that has ended and had begun, and may take its time elsewhere; `before` is done before the cycle
    of a night begins."""

    def __init__(
        self,
        ledger: SqliteLedger,
        rules: ScheduleSettings,
        cycles: Cycles,
        events: EventLog,
        now: Callable[[], str],
        machine: Callable[[], MachineSnapshot],
    ) -> None:
        self.rules = rules
        self.calendar: NightCalendar = calendar_of(rules)
        self.machine = machine
        self.ended: Callable[[Night], object] = lambda night: None
        self.before: Callable[[], object] = lambda: None
        self._ledger = ledger
        self._cycles = cycles
        self._events = events
        self._now = now
        self._lock = threading.RLock()
        self._allowed = ""
        self._why = "the schedule has not been looked at yet"
        self._at_once = False
        self._stop: _Stop | None = None
        self._last: datetime | None = None
        self._joules: float | None = None
        self._used_at: datetime | None = None
        self.seen = NOTHING_SEEN
        self._begun = {night.cycle for night in ledger.nights(REMEMBERED) if night.cycle}
        cycles.supervisor.held = self.holds

    # what others ask
    def holds(self, cycle: str) -> str:
        """Why that cycle may not work now; empty when it may. A cycle that no night began is not held."""
        if not self.rules.enabled or cycle == self._allowed or cycle not in self._begun or self._released() == cycle:
            return ""
        return self._why

    @property
    def looked(self) -> bool:
        """Whether the machine was looked at since the start."""
        return self.seen is not NOTHING_SEEN

    @property
    def working(self) -> bool:
        """Whether a night's cycle may work now."""
        return bool(self._allowed)

    @property
    def why(self) -> str:
        """Why none may."""
        return "" if self._allowed else self._why

    @property
    def next_time(self) -> str | None:
        """When the next night opens; UTC, ISO 8601. None while none is scheduled."""
        found = self.coming(1)
        return found[0].opens.isoformat(timespec="seconds") if found else None

    def coming(self, count: int) -> list[Occasion]:
        """The next nights, without those that a pause covers."""
        state, now = self._ledger.schedule(), self._moment()
        paused = state is not None and state.paused
        if not self.rules.enabled or (paused and state is not None and not state.until):
            return []
        start = max(now, datetime.fromisoformat(state.until)) if paused and state is not None else now
        return list(coming(self.calendar, start, count))

    def state(self) -> ScheduleState:
        """What is on record; as it would be, before the first look."""
        return self._ledger.schedule() or ScheduleState(calendar=self.calendar.text, since=self._now())

    def nights(self, limit: int) -> list[Night]:
        """Those on record, newest date first."""
        return sorted(self._ledger.nights(limit), key=lambda night: night.key, reverse=True)

    # what a person asks for
    def pause(self, until: str = "") -> ScheduleState:
        """Nothing of a night works until then, or until `resume`."""
        changed = self._change(paused=True, until=until)
        self._events.add("schedule", f"nights are paused{f' until {until}' if until else ''} by a person")
        return changed

    def resume(self) -> ScheduleState:
        changed = self._change(paused=False, until="")
        self._events.add("schedule", "nights go on: a person ended the pause")
        return changed

    def release(self, cycle: str) -> None:
        """A person asked that cycle to go on at any hour."""
        if cycle in self._begun and self._released() != cycle:
            self._change(released=cycle)
            self._events.add("schedule", f"{cycle} goes on at any hour: a person asked for it")

    def reported(self, key: str) -> None:
        """People were told of that night's end, or could not be."""
        with self._lock:
            night = self._ledger.night(key)
            if night is not None and night.state.ended:
                self._ledger.put_night(night.model_copy(update={"reported": True}))

    # the clock
    def look(self) -> float:
        """Does what is due now. Returns the seconds until the next look at the latest."""
        with self._lock:
            now = self._moment()
            if not self.rules.enabled:
                self._forget()
                return 3600.0
            state = self._current_state(now)
            if self._last is None:
                self._tell_of_untold(now)
            self._record_missed(state, now)
            deciding = self._to_decide(now)
            if deciding or self._allowed:
                self.seen = self.machine()
            self._count_work(now)
            self._allowed, self._why, self._at_once = "", "no night is open", False
            deciding = [self._ledger.night(night.key) or night if not night.made_up else night for night in deciding]
            for night in deciding:
                self._decide(night, state, now)
            self._enforce(now)
            self._last = now
            return self._pause_between(deciding, now)

    def _tell_of_untold(self, now: datetime) -> None:
        """Nights that ended shortly before the daemon did."""
        for night in self._ledger.nights(REMEMBERED):
            recent = abs(now - _time(night.updated)) < TOLD_WITHIN
            if night.state.ended and recent and not night.reported:
                self.ended(night)

    def _forget(self) -> None:
        """Nights that pass while the schedule is switched off are nobody's loss."""
        self._allowed, self._why, self._stop = "", "", None
        state = self._ledger.schedule()
        if state is not None and state.calendar:
            self._ledger.put_schedule(state.model_copy(update={"calendar": ""}))

    def _to_decide(self, now: datetime) -> list[Night]:
        """Nights that have not ended, and the one that is open; at most one that is open, the first."""
        recorded = self._ledger.nights(REMEMBERED)
        by_key = {night.key: night for night in recorded}
        found = [night for night in recorded if not night.state.ended]
        for one in occasions_at(self.calendar, now, CRON_REACH):
            night = by_key.get(one.key)
            if night is None and all(before.closes and _time(before.closes) <= now for before in found):
                night = Night(
                    key=one.key, opens=_text(one.opens), closes=_text(one.closes), state=NightState.OPEN, updated=""
                )
                found.append(night)
                break
            if night is not None and night.state is NightState.MISSED and not night.begins and not found:
                found.append(night)
                break
        if not found and self.rules.catch_up == "next_start":
            found = self._to_make_up(recorded, now)
        return sorted(found, key=lambda night: night.key)

    def _to_make_up(self, recorded: list[Night], now: datetime) -> list[Night]:
        """The newest night, where it was missed and nobody wanted that."""
        newest = max(recorded, key=lambda night: night.key, default=None)
        if newest is None or newest.state is not NightState.MISSED or newest.begins or newest.made_up or newest.paused:
            return []
        length = _time(newest.closes) - _time(newest.opens) if newest.closes else MADE_UP
        again = {"state": NightState.OPEN, "made_up": True, "opens": _text(now), "closes": _text(now + length)}
        self._events.add("schedule", f"the night of {newest.key} was missed and is made up now")
        return [newest.model_copy(update=again)]

    def _decide(self, night: Night, state: ScheduleState, now: datetime) -> None:
        night = self._adopted(night)
        unfinished = self._cycles.unfinished()
        name = unfinished.id if unfinished is not None else ""
        working = bool(name) and self._cycles.supervisor.works_on(name)
        use = use_of(self.seen, self.rules.idle, working=working)
        if use is not None:
            self._used_at = now
        opens, closes = _time(night.opens), _time(night.closes) if night.closes else None
        open_until = closes if closes is not None else (None if night.begins else opens + CRON_REACH)
        quiet = timedelta(minutes=self.rules.idle.quiet)
        facts = NightFacts(
            night=night,
            is_open=opens <= now and (open_until is None or now < open_until),
            early=now < opens,
            late=self.rules.catch_up == "none" and now > opens + LATE,
            unfinished=name,
            of_a_night=name in self._begun and state.released != name,
            paused=_paused(state),
            use=use,
            quiet=self._used_at is None or now < self._used_at or now - self._used_at >= quiet or use is not None,
        )
        action = decide(facts, self.rules)
        self._do(action, facts)

    def _do(self, action: Action, facts: NightFacts) -> None:
        night = facts.night
        if action.step in (NightStep.WAIT, NightStep.HOLD):
            held = NightState.HELD if action.step is NightStep.HOLD else NightState.OPEN
            self._why, self._at_once = action.reason, action.at_once
            self._put(night, state=held, reason=action.reason, paused=bool(facts.paused))
        elif action.step is NightStep.BEGIN:
            self._begin(night)
        elif action.step is NightStep.GO_ON:
            self._allowed = facts.unfinished
            self._put(night, state=NightState.RUNNING, cycle=facts.unfinished, begins=True, reason="", paused=False)
        elif action.step is NightStep.CLOSE and action.state is not None:
            self._close(night, action)

    def _begin(self, night: Night) -> None:
        """Writes down that it begins before it does: after a kill in between, its cycle is known as its own."""
        newest = next(iter(self._ledger.cycles(limit=1)), None)
        night = self._put(night, begins=True, newest_before=newest.id if newest is not None else "", paused=False)
        self.before()
        try:
            cycle = self._cycles.start("night", scheduled=True)
        except (SandboxError, ConfigError, BrokenError, LedgerError) as error:
            self._put(night, state=NightState.OPEN, reason=f"it cannot start: {error}; {error.hint}")
            return
        self._begun.add(cycle.id)
        self._allowed = cycle.id
        self._put(night, state=NightState.RUNNING, cycle=cycle.id, reason="")

    def _adopted(self, night: Night) -> Night:
        """A night that was killed between its two writes, with the cycle that it had begun."""
        if not night.begins or night.cycle:
            return night
        newest = next(iter(self._ledger.cycles(limit=1)), None)
        if newest is None or newest.id == night.newest_before or newest.kind != "night":
            return night
        self._begun.add(newest.id)
        return self._put(night, state=NightState.RUNNING, cycle=newest.id)

    def _close(self, night: Night, action: Action) -> None:
        if night.state is action.state:
            return
        reason = action.reason
        if night.cycle and (cycle := self._ledger.cycle(night.cycle)) is not None and action.state is NightState.DONE:
            reason = cycle.state.value + (f": {cycle.failure}" if cycle.failure else "")
        ended = self._put(night, state=action.state, reason=reason)
        if action.state is NightState.MISSED:
            self._events.add("schedule", f"the night of {night.key} was missed: {reason}")
            self.ended(ended)
            return
        self._why = reason or "the night is over"
        self._events.add(
            "schedule", f"the night of {night.key} is {ended.state.value}: {reason}", seconds=night.seconds
        )
        self.ended(ended)

    def _record_missed(self, state: ScheduleState, now: datetime) -> None:
        """Puts on record what passed while nobody looked."""
        known = self._ledger.nights(REMEMBERED)
        keys = {night.key for night in known}
        opened = [moment for night in known if (moment := _time(night.opens)) <= now]
        start = max([_time(state.since), *([max(opened)] if opened else [])])
        missed = [
            one
            for one in self.calendar.opening(start, now)
            if (one.closes or one.opens + CRON_REACH) <= now and one.key not in keys
        ]
        if len(missed) > MOST_MISSED:
            self._events.add(
                "schedule", f"{len(missed) - MOST_MISSED} nights before {missed[-MOST_MISSED].key} were missed"
            )
        for one in missed[-MOST_MISSED:]:
            reason = "the daemon did not run, or the clock was set forward"
            night = Night(
                key=one.key, opens=_text(one.opens), closes=_text(one.closes), state=NightState.OPEN, updated=""
            )
            self._put(night, state=NightState.MISSED, reason=reason)
            self._events.add("schedule", f"the night of {one.key} was missed: {reason}")

    def _count_work(self, now: datetime) -> None:
        """Adds the time, and the energy, since the last look to the night that worked meanwhile."""
        before, joules = self._joules, self.seen.joules
        self._joules = joules
        if self._last is None or not self._allowed or not self._cycles.supervisor.works_on(self._allowed):
            return
        for night in self._ledger.nights(REMEMBERED):
            if night.cycle == self._allowed and not night.state.ended:
                passed = min(max(now - self._last, timedelta(0)), LONGEST_LOOK)
                taken = None if joules is None or before is None else (night.joules or 0.0) + joules - before
                self._put(night, seconds=night.seconds + passed.total_seconds(), joules=taken or night.joules)

    def _enforce(self, now: datetime) -> None:
        """Has a worker end that works on a night's cycle which may not work now."""
        unfinished = self._cycles.unfinished()
        if unfinished is None or not self.holds(unfinished.id) or not self._cycles.supervisor.works_on(unfinished.id):
            self._stop = None
            return
        if self._stop is None or self._stop.cycle != unfinished.id:
            by = now + timedelta(minutes=self.rules.stop_within)
            self._events.add("schedule", f"{unfinished.id} is to stop: {self._why}")
            self._stop = _Stop(unfinished.id, self._ledger.newest_event(), now, by)
        stop, said = self._stop, (event.kind for _, event in self._ledger.events(after=self._stop.after, limit=1000))
        if stop.asked is not None and abs(now - stop.asked) < ASKED_AGAIN:
            return
        in_time = stop.since <= now < stop.by  # neither when the clock was set back
        if self._at_once or not in_time or any(kind in BOUNDARIES for kind in said):
            stop.asked = now
            self._cycles.supervisor.pause_cycle(unfinished.id)

    def _pause_between(self, deciding: list[Night], now: datetime) -> float:
        if self._stop is not None:
            return STOPPING_SECONDS
        return LOOK_SECONDS if deciding else self._until_next(now)

    def _until_next(self, now: datetime) -> float:
        found = coming(self.calendar, now, 1, within=timedelta(days=2))
        ahead = (found[0].opens - now).total_seconds() if found else 60.0
        return max(1.0, min(60.0, ahead))

    def _current_state(self, now: datetime) -> ScheduleState:
        """What is on record, counted anew where the calendar is another one; a pause ends when its time has come."""
        state = self._ledger.schedule()
        changed = state
        if state is None or state.calendar != self.calendar.text:
            changed = self.state().model_copy(update={"calendar": self.calendar.text, "since": _text(now)})
        assert changed is not None
        if _time(changed.since) > now:
            changed = changed.model_copy(update={"since": _text(now)})
        if changed.paused and changed.until and _time(changed.until) <= now:
            changed = changed.model_copy(update={"paused": False, "until": ""})
            self._events.add("schedule", "nights go on: the pause is over")
        if changed != state:
            self._ledger.put_schedule(changed)
        return changed

    def _change(self, **changes: object) -> ScheduleState:
        with self._lock:
            changed = self.state().model_copy(update=changes)
            self._ledger.put_schedule(changed)
            return changed

    def _released(self) -> str:
        state = self._ledger.schedule()
        return state.released if state is not None else ""

    def _put(self, night: Night, **changes: object) -> Night:
        """Writes it down where that changes anything; a new reason to wait is an event."""
        changed = night.model_copy(update=changes)
        if changed == night and night.updated:
            return night
        if changed.reason and changed.reason != night.reason and not changed.state.ended:
            self._events.add("schedule", f"the night of {night.key} waits: {changed.reason}")
        changed = changed.model_copy(update={"updated": self._now()})
        self._ledger.put_night(changed)
        return changed

    def _moment(self) -> datetime:
        return _time(self._now())


def _paused(state: ScheduleState) -> str:
    if not state.paused:
        return ""
    return f"nights are paused until {state.until[:16]} UTC" if state.until else "nights are paused by a person"


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


def _text(moment: datetime | None) -> str:
    return "" if moment is None else moment.astimezone(UTC).isoformat(timespec="seconds")
