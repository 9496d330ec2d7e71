"""Begins, holds and ends nights as `appliance.nights.decide` says, on the records of `schedule_store`.

Invariants: a date that has a cycle never gets a second one, across restarts and clock changes. A night's cycle works
only while a night allows it; a cycle that a person began is never stopped here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

import structlog

from appliance.daemon.contract import BrokenError, EventLog
from appliance.daemon.nights.schedule_store import CRON_REACH, REMEMBERED, NightBook, time_of
from appliance.daemon.service.cycles import Cycles, new_cycle_id
from appliance.daemon.service.supervisor import WorkerSupervisor
from appliance.ledger.ledger import LedgerError
from appliance.ledger.sqlite import SqliteLedger
from appliance.nights.calendar import NightCalendar, calendar_of, coming
from appliance.nights.decide import Action, NightFacts, NightStep, decide, waits_for_person
from appliance.nights.machine import MachineSnapshot, use_of
from appliance.nights.settings import ScheduleSettings
from appliance.records.nights import Night, NightState, ScheduleState
from appliance.settings.config_layers import ConfigError
from runtime.errors import SandboxError

ASKED_AGAIN = timedelta(seconds=20)
"""Time after which a worker is asked again to end: it may have begun only just then."""
BOUNDARIES = frozenset({"step", "watch", "evaluation", "phase"})
"""Kinds of events that a worker writes between two steps."""


@dataclass
class _Stop:
    cycle: str
    after: int
    """Newest event when the stop was requested."""
    since: datetime
    by: datetime
    asked: datetime | None = None
    """Time at which the worker was last asked to end."""


class NightStop:
    """Ends the worker of a night's cycle at a step boundary, or after a time limit."""

    def __init__(self, ledger: SqliteLedger, supervisor: WorkerSupervisor, events: EventLog, within: timedelta) -> None:
        self._ledger, self._supervisor, self._events, self._within = ledger, supervisor, events, within
        self._stop: _Stop | None = None

    @property
    def under_way(self) -> bool:
        return self._stop is not None

    def forget(self) -> None:
        """Drops the pending request to end a cycle's worker."""
        self._stop = None

    def enforce(self, cycle: str, why: str, now: datetime, *, at_once: bool) -> None:
        """Asks the cycle's worker to end because of `why`. It does so at the worker's next step boundary, after the
        time limit, or with `at_once` immediately, and is called repeatedly until the worker has ended."""
        if self._stop is None or self._stop.cycle != cycle:
            self._events.add("schedule", f"{cycle} must stop: {why}")
            self._stop = _Stop(cycle, self._ledger.newest_event(), now, now + self._within)
        stop, said = self._stop, (event.kind for _, event in self._ledger.events(after=self._stop.after, limit=1000))
        if stop.asked is not None and abs(now - stop.asked) < ASKED_AGAIN:
            return
        in_time = stop.since <= now < stop.by  # False too if the clock was set back
        if at_once or not in_time or any(kind in BOUNDARIES for kind in said):
            stop.asked = now
            self._supervisor.pause_cycle(cycle)


LOOK_SECONDS = 30.0
"""Interval between looks while a window is open, in seconds; the machine's clock may be set."""
STOPPING_SECONDS = 1.0
"""Interval between looks while a worker finishes its step, in seconds."""
LATE = timedelta(minutes=30)
"""Delay after which a night without catch-up is late."""
LONGEST_LOOK = timedelta(minutes=10)
"""Maximum working time counted between two looks: the machine may have slept."""
FAR = timedelta(hours=12)
"""Distance before its window beyond which a begun night, after the clock was set back, yields to others."""
NOTHING_SEEN = MachineSnapshot()

log = structlog.get_logger("assay")


class Nights:
    """Begins, holds and ends the schedule's nights; thread-safe. `look` does what is due and returns the seconds until
    the next look.

    `ended` gets a begun night that has ended; `before` runs before a night's cycle begins, may take long, and the night
    is decided again after it.
    """

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
        self.book = NightBook(ledger, rules, self.calendar, events, now)
        self._allowed = ""
        self._why = "the schedule has not been checked yet"
        self._at_once = False
        self._stop = NightStop(ledger, cycles.supervisor, events, timedelta(minutes=rules.stop_within))
        self._last: datetime | None = None
        self._joules: float | None = None
        self._used_at: datetime | None = None
        self._preparing = self._prepared = ""
        """Night that waits for `before`, and the night for which it has run."""
        self.seen = NOTHING_SEEN
        self._begun = {night.cycle for night in ledger.nights(REMEMBERED) if night.cycle}
        cycles.supervisor.held = self.holds

    # queries
    def holds(self, cycle: str) -> str:
        """Returns why the schedule forbids work on the cycle now; empty if it does not. A cycle that no night began is
        never held."""
        if (
            not self.rules.enabled
            or cycle == self._allowed
            or cycle not in self._begun
            or self.book.released() == cycle
        ):
            return ""
        return self._why

    @property
    def looked(self) -> bool:
        """True if the machine's use was measured since the start."""
        return self.seen is not NOTHING_SEEN

    @property
    def working(self) -> bool:
        """True if a night's cycle may work now."""
        return bool(self._allowed)

    @property
    def why(self) -> str:
        """Reason why no night's cycle may work; empty if one may."""
        return "" if self._allowed else self._why

    @property
    def paused(self) -> str:
        """Sentence about a person's pause of nights; empty without one."""
        return _paused(self.book.state())

    @property
    def next_time(self) -> str | None:
        """Start of the next night in UTC, ISO 8601; None if none is scheduled."""
        found = self.book.coming(1)
        return found[0].opens.isoformat(timespec="seconds") if found else None

    def release(self, cycle: str) -> None:
        """Lets a night's cycle run at any hour, on a person's request."""
        if cycle in self._begun and self.book.released() != cycle:
            self.book.change(released=cycle)
            self._events.add("schedule", f"{cycle} may run at any hour: a person asked for it")

    # the clock
    def look(self) -> float:
        """Begins, holds and ends nights as is due now. Returns the maximum seconds until the next look."""
        seconds = self._look()
        if self._preparing:  # without the lock: a person may pause nights, or begin a cycle, meanwhile
            self.before()
            self._prepared = self._preparing
            seconds = self._look()
        return seconds

    def _look(self) -> float:
        with self.book.lock:
            now = self.book.moment()
            self._preparing = ""
            if not self.rules.enabled:
                self._forget()
                return 3600.0
            state = self.book.current_state(now)
            if self._last is None:
                for night in self.book.untold(now):
                    self.ended(night)
            missed = self.book.record_missed(state, now)
            deciding = self.book.to_decide(now)
            self._tell_missed([one for one in missed if one.key not in {night.key for night in deciding}])
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

    def _tell_missed(self, missed: list[Night]) -> None:
        """Notifies people once, with the newest of these missed nights. The others count as reported."""
        for night in missed[:-1]:
            self.book.reported(night.key)
        for night in missed[-1:]:
            self.ended(night)

    def _forget(self) -> None:
        """Resets the schedule's state while it is disabled, so that nights meanwhile do not count as missed."""
        self._allowed, self._why = "", ""
        self._stop.forget()
        state = self._ledger.schedule()
        if state is not None and state.calendar:
            self._ledger.put_schedule(state.model_copy(update={"calendar": ""}))

    def _decide(self, night: Night, state: ScheduleState, now: datetime) -> None:
        night = self._adopted(night)
        unfinished = self._cycles.unfinished()
        name = unfinished.id if unfinished is not None else ""
        working = bool(name) and self._cycles.supervisor.works_on(name)
        use = use_of(self.seen, self.rules.idle, working=working)
        if use is not None:
            self._used_at = now
        opens, closes = time_of(night.opens), time_of(night.closes) if night.closes else None
        open_until = closes if closes is not None else (None if night.begins else opens + CRON_REACH)
        quiet = timedelta(minutes=self.rules.idle.quiet)
        facts = NightFacts(
            night=night,
            is_open=opens <= now and (open_until is None or now < open_until),
            early=now < opens,
            far=opens - now > FAR,
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
            self.book.put(night, state=held, reason=action.reason, paused=bool(facts.paused))
        elif action.step is NightStep.BEGIN:
            self._begin(night)
        elif action.step is NightStep.GO_ON:
            self._allowed = facts.unfinished
            self.book.put(night, state=NightState.RUNNING, cycle=facts.unfinished, begins=True, reason="", paused=False)
        elif action.step is NightStep.CLOSE and action.state is not None:
            self._close(night, action)

    def _begin(self, night: Night) -> None:
        """Begins a night's cycle; at the first call only notes that `before` must run first. The cycle's id is recorded
        before it begins: after a kill in between, exactly that cycle belongs to the night."""
        if self._prepared != night.key:
            self._preparing, self._why = night.key, "a night is about to begin: verified work becomes tasks"
            self.book.put(night, state=NightState.OPEN, begins=True, reason="", paused=False, reported=False)
            return
        name = new_cycle_id("night", self.book.moment().isoformat())
        night = self.book.put(night, begins=True, begins_as=name, paused=False)
        try:
            cycle = self._cycles.start("night", scheduled=True, name=name)
        except (SandboxError, ConfigError, BrokenError, LedgerError) as error:
            self.book.put(night, state=NightState.OPEN, reason=f"it cannot start: {error}; {error.hint}")
            return
        if cycle.id != name:  # another cycle began in between
            self.book.put(night, state=NightState.OPEN, reason=waits_for_person(cycle.id))
            return
        self._begun.add(cycle.id)
        self._allowed = cycle.id
        log.info("a night begins", cycle=cycle.id, closes=night.closes or "when its work is done")
        self.book.put(night, state=NightState.RUNNING, cycle=cycle.id, reason="")

    def _adopted(self, night: Night) -> Night:
        """Assigns a night, killed between its two writes, the cycle that it had begun."""
        if not night.begins_as or night.cycle or self._ledger.cycle(night.begins_as) is None:
            return night
        self._begun.add(night.begins_as)
        return self.book.put(night, state=NightState.RUNNING, cycle=night.begins_as)

    def _close(self, night: Night, action: Action) -> None:
        if night.state is action.state:
            return
        reason = action.reason
        if night.cycle and (cycle := self._ledger.cycle(night.cycle)) is not None and action.state is NightState.DONE:
            reason = cycle.state.value + (f": {cycle.failure}" if cycle.failure else "")
        ended = self.book.put(night, state=action.state, reason=reason)
        if action.state is NightState.MISSED:
            self._events.add("schedule", f"the night of {night.key} was missed: {reason}")
            self.ended(ended)
            return
        self._why = reason or "the night is over"
        self._events.add(
            "schedule", f"the night of {night.key} is {ended.state.value}: {reason}", seconds=night.seconds
        )
        self.ended(ended)

    def _count_work(self, now: datetime) -> None:
        """Adds the time and energy since the last look to the night whose cycle works. A held night counts too while it
        finishes its step, but not a cycle that a person released."""
        before, joules = self._joules, self.seen.joules
        self._joules = joules
        if self._last is None:
            return
        for night in self._ledger.nights(REMEMBERED):
            if night.state.ended or not night.cycle or not self._cycles.supervisor.works_on(night.cycle):
                continue
            if self._allowed == night.cycle or self.book.released() != night.cycle:
                passed = min(max(now - self._last, timedelta(0)), LONGEST_LOOK)
                taken = None if joules is None or before is None else (night.joules or 0.0) + joules - before
                self.book.put(night, seconds=night.seconds + passed.total_seconds(), joules=taken or night.joules)

    def _enforce(self, now: datetime) -> None:
        """Asks the worker of a night's cycle to end if that cycle may not work now."""
        unfinished = self._cycles.unfinished()
        if unfinished is None or not self.holds(unfinished.id) or not self._cycles.supervisor.works_on(unfinished.id):
            self._stop.forget()
        else:
            self._stop.enforce(unfinished.id, self._why, now, at_once=self._at_once)

    def _pause_between(self, deciding: list[Night], now: datetime) -> float:
        if self._stop.under_way:
            return STOPPING_SECONDS
        return LOOK_SECONDS if deciding else self._until_next(now)

    def _until_next(self, now: datetime) -> float:
        found = coming(self.calendar, now, 1, within=timedelta(days=2))
        ahead = (found[0].opens - now).total_seconds() if found else 60.0
        return max(1.0, min(60.0, ahead))


def _paused(state: ScheduleState) -> str:
    if not state.paused:
        return ""
    return f"nights are paused until {state.until[:16]} UTC" if state.until else "nights are paused by a person"
