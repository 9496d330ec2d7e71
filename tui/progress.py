"""The cycle as two or three lines: phases, how far the present one is, the figures of now. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from appliance.client import Cycle, CycleState, Event
from tui.snapshot import StatusSnapshot
from tui.text import BAD, DIM, GOOD, STRONG, percent, plain, sparkline

PHASES = ("prepare", "warm_start", "training", "evaluation", "decision")
NONE_YET = "No cycle yet: `assay cycle start` begins one, or the schedule does."


def cycle_text(snapshot: StatusSnapshot, width: int) -> Text:
    """At most three lines, each at most `width` cells wide."""
    cycle = snapshot.status.cycle
    if cycle is None:
        return plain(NONE_YET, DIM)
    own = _events_of(snapshot.events, cycle)
    lines = [_phases(cycle, width)]
    if cycle.state is CycleState.FAILED:
        lines.append(plain(f"failed: {cycle.failure}", BAD, limit=width))
    elif cycle.state is CycleState.RUNNING:
        lines.append(_how_far(own, width))
    else:
        lines.append(_spent(cycle, width))
    lines.append(_figures(snapshot, own, width))
    for line in lines:
        line.truncate(width, overflow="ellipsis")
    return Text("\n").join(lines)


def _events_of(events: Sequence[tuple[int, Event]], cycle: Cycle) -> list[Event]:
    """A cycle's events are those since it began; only one runs at a time."""
    return [event for _, event in events if event.created >= cycle.created]


def _phases(cycle: Cycle, width: int) -> Text:
    phases = [phase for phase in PHASES if phase != "warm_start" or phase == cycle.phase or phase in cycle.seconds]
    reached = phases.index(cycle.phase) if cycle.phase in phases else len(phases)
    text = Text()
    text.append_text(plain(cycle.id, STRONG, limit=max(12, width - 64)))
    for index, phase in enumerate(phases):
        name = phase.replace("_", " ")
        if index < reached:
            text.append(f"  ✓ {name}", GOOD)
        elif index == reached:
            text.append(f"  ▸ {name}", STRONG if cycle.state is CycleState.RUNNING else BAD)
        else:
            text.append(f"  · {name}", DIM)
    return text


def _how_far(events: Sequence[Event], width: int) -> Text:
    phase_began = max((index for index, event in enumerate(events) if event.kind == "phase"), default=0)
    counted = [event for event in events[phase_began:] if {"step", "steps"} <= event.figures.keys()]
    if not counted:
        return plain("working" if events else "waiting for its worker", DIM)
    newest = counted[-1]
    steps = max(newest.figures["steps"], 1.0)
    done = min(newest.figures["step"] + (newest.kind == "step"), steps)
    bar = max(10, min(40, width - 40))
    filled = round(bar * done / steps)
    text = Text()
    text.append("━" * filled, GOOD)
    text.append("━" * (bar - filled), "#3a404a")
    text.append_text(plain(f"  {newest.kind.replace('_', ' ')} {done:.0f} of {steps:.0f}"))
    text.append(f"  {100 * done / steps:.0f} %", DIM)
    return text


def _spent(cycle: Cycle, width: int) -> Text:
    spent = ", ".join(f"{phase.replace('_', ' ')} {_minutes(seconds)}" for phase, seconds in cycle.seconds.items())
    return plain(f"done in {_minutes(sum(cycle.seconds.values()))}: {spent}", DIM, limit=width)


def _figures(snapshot: StatusSnapshot, events: Sequence[Event], width: int) -> Text:
    """Success and tool errors of the newest training step, speed, and success over the steps so far."""
    figures = snapshot.status.step_metrics
    if not figures:
        shares = [event.figures["success"] for event in events if "success" in event.figures]
        return plain(f"success {percent(shares[-1])} on held-out tasks" if shares else "", limit=width)
    parts = []
    if "success" in figures:
        parts.append(f"success {percent(figures['success'])}")
    if "tool_errors_in_correct" in figures:
        parts.append(f"tool errors {percent(figures['tool_errors_in_correct'])}")
    seconds = figures.get("sampling_seconds", 0.0)
    if seconds > 0:
        parts.append(f"{figures.get('tokens', 0.0) / seconds:,.0f} tokens/s")
        parts.append(f"{figures.get('tool_calls', 0.0) / seconds:,.0f} calls/s")
    text = plain("   ".join(parts), limit=width)
    successes = [event.figures["success"] for event in events if event.kind == "step" and "success" in event.figures]
    room = min(60, width - len(text.plain) - 3)
    if len(successes) > 1 and room >= 8:
        text.append(f"   {sparkline(successes, room)}", GOOD)
    return text


def _minutes(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.1f} min"
