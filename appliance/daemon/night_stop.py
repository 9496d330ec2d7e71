"""Has the worker of a night's cycle end when the night no longer lets it work.

What always holds: it ends at the end of its step, or after `schedule.stop_within`; at once where somebody else computes
on a GPU; and it is told again where it had only just begun.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from appliance.daemon.events import EventLog
from appliance.daemon.supervisor import WorkerSupervisor
from appliance.ledger.sqlite import SqliteLedger

ASKED_AGAIN = timedelta(seconds=20)
"""After which a worker is told again to end: it may have begun just then."""
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


class NightStop:
    """One worker at a time, which is to end or not."""

    def __init__(self, ledger: SqliteLedger, supervisor: WorkerSupervisor, events: EventLog, within: timedelta) -> None:
        self._ledger, self._supervisor, self._events, self._within = ledger, supervisor, events, within
        self._stop: _Stop | None = None

    @property
    def under_way(self) -> bool:
        return self._stop is not None

    def forget(self) -> None:
        """No worker has to end."""
        self._stop = None

    def enforce(self, cycle: str, why: str, now: datetime, *, at_once: bool) -> None:
        """Has the worker of that cycle end, because of `why`; called again and again until it has."""
        if self._stop is None or self._stop.cycle != cycle:
            self._events.add("schedule", f"{cycle} is to stop: {why}")
            self._stop = _Stop(cycle, self._ledger.newest_event(), now, now + self._within)
        stop, said = self._stop, (event.kind for _, event in self._ledger.events(after=self._stop.after, limit=1000))
        if stop.asked is not None and abs(now - stop.asked) < ASKED_AGAIN:
            return
        in_time = stop.since <= now < stop.by  # neither when the clock was set back
        if at_once or not in_time or any(kind in BOUNDARIES for kind in said):
            stop.asked = now
            self._supervisor.pause_cycle(cycle)
