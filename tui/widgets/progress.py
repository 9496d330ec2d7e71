"""The cycle in two or three lines: phases, progress of the current one, and current figures. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from rich.text import Text

from tui.widgets.text import BAD, DIM, FAINT, GOOD, STRONG, Numbered, percent, plain, sparkline

if TYPE_CHECKING:  # loaded with the first answer
    from appliance.client import Cycle, Event, Status

STOPPED = ("cancelled", "failed", "set_aside")
AXIS = 30
"""Room of a sparkline's axis, in cells: its first and last step, its lowest and highest value."""
PHASES = ("prepare", "warm_start", "training", "evaluation", "decision")
NONE_YET = "No cycle yet: `assay cycle start` begins one, or the schedule does."


def cycle_text(status: Status, events: Sequence[Numbered], width: int) -> Text:
    """Describes the current cycle's phases, progress and figures in at most three lines of at most `width` cells."""
    cycle = status.cycle
    if cycle is None:
        return plain(NONE_YET, DIM)
    own = _events_of(events, cycle)
    lines = [_phases(cycle, width)]
    if cycle.state in ("failed", "set_aside"):
        said = "failed: " if cycle.state == "failed" else ""
        lines.append(plain(f"{said}{cycle.failure}", BAD, limit=width))
    elif cycle.state == "running":
        lines.append(_how_far(own, width))
    else:
        lines.append(_spent(cycle, width))
    lines.append(_figures(status, own, width))
    for line in lines:
        line.truncate(width, overflow="ellipsis")
    return Text("\n").join(lines)


def _events_of(events: Sequence[Numbered], cycle: Cycle) -> list[Event]:
    """Returns the events since a cycle began; only one cycle runs at a time."""
    return [event for _, event in events if event.created >= cycle.created]


def _phases(cycle: Cycle, width: int) -> Text:
    phases = [phase for phase in PHASES if phase != "warm_start" or phase == cycle.phase or phase in cycle.seconds]
    reached = phases.index(cycle.phase) if cycle.phase in phases else len(phases)
    text = Text()
    for index, phase in enumerate(phases):
        name = phase.replace("_", " ")
        if index < reached:
            text.append(f"  ✓ {name}", GOOD)
        elif index == reached:
            text.append(
                f"  {'✗' if cycle.state in STOPPED else '▸'} {name}", STRONG if cycle.state == "running" else BAD
            )
        else:
            text.append(f"  · {name}", DIM)
    return plain(cycle.id, STRONG, limit=max(12, width - text.cell_len)).append_text(text)


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
    text.append("━" * (bar - filled), FAINT)
    counted_as = "" if newest.kind == "step" else f"{newest.kind.replace('_', ' ')} "
    text.append_text(plain(f"  {counted_as}{done:.0f} of {steps:.0f}{'' if counted_as else ' steps'}"))
    text.append(f"  {100 * done / steps:.0f} %", DIM)
    text.append(_left(counted, steps - done), DIM)
    return text


def _left(counted: Sequence[Event], steps: float) -> str:
    """Estimates the time for the steps to go from the times of those reported; empty before two of a kind."""
    same = [event for event in counted if event.kind == counted[-1].kind]
    try:
        began, ended = (datetime.fromisoformat(event.created) for event in (same[0], same[-1]))
        seconds = (ended - began).total_seconds()
    except (ValueError, TypeError):  # a worker wrote the times
        return ""
    taken = same[-1].figures["step"] - same[0].figures["step"]
    return f"  about {duration(seconds / taken * steps)} left" if taken > 0 and seconds > 0 and steps > 0 else ""


def _spent(cycle: Cycle, width: int) -> Text:
    spent = ", ".join(f"{phase.replace('_', ' ')} {_minutes(seconds)}" for phase, seconds in cycle.seconds.items())
    said = "cancelled after" if cycle.state == "cancelled" else "done in"
    return plain(f"{said} {_minutes(sum(cycle.seconds.values()))}{': ' if spent else ''}{spent}", DIM, limit=width)


def _figures(status: Status, events: Sequence[Event], width: int) -> Text:
    """Shows success, tool errors and speed of the newest training step, and success over all steps so far."""
    figures = status.step_metrics
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
        parts.append(f"{rate(figures.get('tool_calls', 0.0) / seconds)} calls/s")
    text = plain("   ".join(parts), limit=width)
    steps = [event.figures for event in events if event.kind == "step" and {"step", "success"} <= event.figures.keys()]
    shown = steps[-max(2, min(60, width - text.cell_len - AXIS)) :]
    if len(shown) > 1 and width - text.cell_len - AXIS >= 8:
        values = [figures["success"] for figures in shown]
        text.append(f"   steps {shown[0]['step'] + 1:.0f}-{shown[-1]['step'] + 1:.0f} ", DIM)
        text.append(sparkline(values, len(values)), GOOD)
        text.append(f" {100 * min(values):.0f}-{100 * max(values):.0f} %", DIM)
    return text


def duration(seconds: float) -> str:
    """Formats seconds as `42 s`, `12 min`, `3 h 20 min` or `4 days`."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    if seconds < 7200:
        return f"{seconds / 60:.0f} min"
    if seconds < 172_800:
        return f"{int(seconds // 3600)} h {int(seconds % 3600 // 60)} min"
    return f"{seconds / 86_400:.0f} days"


def rate(one_second: float) -> str:
    """Formats a number per second, with one decimal below 10."""
    return f"{one_second:,.0f}" if one_second >= 10 else f"{one_second:.1f}"


def _minutes(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.1f} min"
