"""Recorded nights, one per date and none lost silently, and people's instructions to the schedule."""

from __future__ import annotations

from enum import StrEnum

from appliance.records.record import Record
from policies.canary import Counts
from policies.contract.rules import ServiceRules


class NightState(StrEnum):
    OPEN = "open"
    """The window is open and the night waits."""
    RUNNING = "running"
    HELD = "held"
    """Begun and stopped for now: somebody uses the machine, or paused the schedule."""
    DONE = "done"
    """The cycle has ended, with any result."""
    STOPPED = "stopped"
    """The window or the budget ended first; the next night resumes the cycle."""
    MISSED = "missed"
    """The night never began."""

    @property
    def ended(self) -> bool:
        return self in (NightState.DONE, NightState.STOPPED, NightState.MISSED)


class Night(Record):
    """One date of the calendar, and the outcome of its night."""

    key: str
    """Local date on which the window opens; for a cron line the local minute."""
    opens: str
    closes: str
    """End in UTC, ISO 8601; empty for a night without an end."""
    state: NightState
    cycle: str = ""
    begins_as: str = ""
    """Id of the cycle about to begin, written first: after a kill in between, that cycle belongs to the night."""
    begins: bool = False
    """True once the night has begun, or was about to."""
    made_up: bool = False
    """True if the night was missed and runs outside its window."""
    paused: bool = False
    """True if it waits because a person paused the schedule."""
    reason: str = ""
    """Reason for waiting or ending."""
    seconds: float = 0.0
    """Working time in seconds."""
    joules: float | None = None
    """Energy used while working, in joules; None if not measured."""
    reported: bool = False
    updated: str


class ScheduleState(Record):
    """State that the schedule keeps across restarts."""

    calendar: str
    """Text of the calendar, with its zone, under which nights are counted from `since` on."""
    since: str
    """Time from which nights count; earlier ones are never missed."""
    paused: bool = False
    until: str = ""
    """End of the pause; empty if a person must end it."""
    released: str = ""
    """A night's cycle that a person released to run at any hour."""


class CanaryState(StrEnum):
    REPLAY = "replay"
    """The canary replays earlier jobs; people's jobs go to the champion."""
    SHARE = "share"
    """The canary answers its share of people's jobs."""
    PASSED = "passed"
    """The canary became champion."""
    TAKEN_BACK = "taken_back"

    @property
    def ended(self) -> bool:
        return self in (CanaryState.PASSED, CanaryState.TAKEN_BACK)


class Canary(Record):
    """A promoted model on trial beside the champion. The record is authoritative: aliases that disagree are moved."""

    id: str
    candidate: str
    champion: str
    decision: str
    """Id of the decision that promoted it."""
    rules: ServiceRules
    """Rules in force when it began; later policy edits do not apply to it."""
    state: CanaryState
    started: str
    share_since: str = ""
    ended: str = ""
    reason: str = ""
    """Reason for its end."""
    counts: Counts = Counts()
    """Counts at its end."""
