"""A night on record, so that no date has two and none is lost without a word; and what people said of the schedule."""

from __future__ import annotations

from enum import StrEnum

from appliance.records.record import Record


class NightState(StrEnum):
    OPEN = "open"
    """Its window is open, and it waits for something."""
    RUNNING = "running"
    HELD = "held"
    """Begun, and stopped for now: somebody uses the machine, or paused it."""
    DONE = "done"
    """Its cycle has ended, however."""
    STOPPED = "stopped"
    """Its window or its budget was over first; the cycle goes on with the next night."""
    MISSED = "missed"
    """It never began."""

    @property
    def ended(self) -> bool:
        return self in (NightState.DONE, NightState.STOPPED, NightState.MISSED)


class Night(Record):
    """Is one date of the calendar, and what became of it."""

    key: str
    """The local date on which its window opens; of a cron line its local minute."""
    opens: str
    closes: str
    """UTC, ISO 8601; empty where a night has no end."""
    state: NightState
    cycle: str = ""
    begins_as: str = ""
    """The id of the cycle that it was about to begin, written before that is: after a kill in between it is its own."""
    newest_before: str = ""
    """Of earlier versions, which asked it whose a newer cycle is; it does not say that."""
    begins: bool = False
    """It has begun, or was about to."""
    made_up: bool = False
    """It runs outside of its window, because it was missed."""
    paused: bool = False
    """It waits because a person paused the schedule."""
    reason: str = ""
    """What it waits for, or why it ended."""
    seconds: float = 0.0
    """At work."""
    joules: float | None = None
    """Taken meanwhile; None where nothing measures it."""
    reported: bool = False
    updated: str


class ScheduleState(Record):
    """Is what the schedule has to know over restarts."""

    calendar: str
    """The calendar in words and its zone, as it was when nights were counted from `since` on."""
    since: str
    """Nights before this are nobody's loss."""
    paused: bool = False
    until: str = ""
    """When the pause ends; empty: when a person says so."""
    released: str = ""
    """A night's cycle that a person asked to go on at any hour."""
