"""Decides what to do about one night now: facts in, one action out. Pure.

Invariants: a night that has a cycle never begins another one; a person's own cycle is waited for and never stopped;
while anything holds a night, none of its work runs; a night ends once its window is over.

    open -> running <-> held            within the window
    open -> missed                      it never began
    running, held -> done               its cycle has ended
    running, held -> stopped            the window, or the budget, ended first: the next night resumes the cycle
    any of them -> stopped, missed      the clock was set back so far that other nights come first
    missed -> open                      its window is open after all (the clock was set back), or it is made up
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from appliance.nights.machine import Use
from appliance.nights.settings import ScheduleSettings
from appliance.records.nights import Night, NightState


class NightStep(StrEnum):
    NOTHING = "nothing"
    WAIT = "wait"
    """The night cannot begin yet."""
    BEGIN = "begin"
    """Begin a new cycle for the night."""
    GO_ON = "go_on"
    """Resume the unfinished cycle of an earlier or this night."""
    HOLD = "hold"
    """Stop working for now; the night may resume within its window."""
    CLOSE = "close"


@dataclass(frozen=True)
class Action:
    step: NightStep
    reason: str = ""
    at_once: bool = False
    """True if the worker ends immediately rather than at the end of its step."""
    state: NightState | None = None
    """Final state of the night, with `close`."""


@dataclass(frozen=True)
class NightFacts:
    night: Night
    is_open: bool
    """True while the window, or the time for making the night up, is open."""
    early: bool
    """True if the window has yet to open because the clock was set back."""
    far: bool
    """True if other nights may come before the window opens."""
    late: bool
    """True if the catch-up rule no longer lets the night begin."""
    unfinished: str
    """Id of the unfinished cycle; empty if none."""
    of_a_night: bool
    """True if the unfinished cycle is a night's and no person released it to run at any hour."""
    paused: str
    """Reason why the schedule is paused; empty if it is not."""
    use: Use | None
    quiet: bool
    """True if the machine has been free for long enough."""


def decide(facts: NightFacts, rules: ScheduleSettings) -> Action:
    """Returns what to do about a night now: begin, resume, hold or end it, or wait, with the reason."""
    night = facts.night
    if night.state in (NightState.DONE, NightState.STOPPED):
        return Action(NightStep.NOTHING)
    if night.cycle and facts.unfinished != night.cycle:
        return Action(NightStep.CLOSE, state=NightState.DONE)
    if facts.early and facts.far:
        why = f"the clock was set back, and its window opens on {night.opens[:16]} UTC"
        return Action(NightStep.CLOSE, why, state=NightState.STOPPED if night.cycle else NightState.MISSED)
    if facts.early:
        return Action(
            NightStep.HOLD if night.cycle else NightStep.WAIT, "its window is not open yet: the clock was set back"
        )
    if not facts.is_open:
        return Action(NightStep.NOTHING) if night.state is NightState.MISSED else _window_over(night)
    if spent := budget_spent(night, rules):
        return Action(NightStep.CLOSE, spent, state=NightState.STOPPED)
    if facts.unfinished and not facts.of_a_night and facts.unfinished != night.cycle:
        return Action(NightStep.WAIT, waits_for_person(facts.unfinished))
    held = _held(facts)
    if held is not None:
        return held
    if facts.unfinished:
        return Action(NightStep.GO_ON)
    if facts.late and not night.begins:
        return Action(
            NightStep.CLOSE, "it could not begin on time, and schedule.catch_up is none", state=NightState.MISSED
        )
    return Action(NightStep.BEGIN)


def waits_for_person(cycle: str) -> str:
    """Returns why a night waits while a person's own cycle is unfinished."""
    return f"cycle {cycle}, which a person started, is not finished"


def _window_over(night: Night) -> Action:
    if night.cycle:
        return Action(NightStep.CLOSE, "its window is over: the next night resumes the cycle", state=NightState.STOPPED)
    return Action(NightStep.CLOSE, night.reason or "its window is over", state=NightState.MISSED)


def _held(facts: NightFacts) -> Action | None:
    step = NightStep.HOLD if facts.night.cycle else NightStep.WAIT
    if facts.paused:
        return Action(step, facts.paused)
    if facts.use is not None:
        return Action(step, facts.use.reason, at_once=facts.use.at_once)
    if not facts.quiet:
        return Action(step, "this machine was in use a moment ago")
    return None


def budget_spent(night: Night, rules: ScheduleSettings) -> str:
    """Returns which budget of a night, time or energy, is used up, as a sentence; empty if none."""
    if rules.max_hours is not None and night.seconds >= 3600 * rules.max_hours:
        return f"it has worked for {rules.max_hours:g} hours: the next night resumes the cycle"
    if rules.max_energy is not None and night.joules is not None and night.joules >= 3.6e6 * rules.max_energy:
        return f"it has used {rules.max_energy:g} kWh: the next night resumes the cycle"
    return ""
