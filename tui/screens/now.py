"""The screen Now: running work, held-out success by night, what waits for a person, what is wrong, and the newest
events. Machine and queue have boxes where there is room."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rich.text import Text
from textual.app import ComposeResult
from textual.containers import Horizontal

from tui.widgets.night_curve import LEGEND, TITLE, night_curve
from tui.widgets.panels import TALL, Detail, PlainText
from tui.widgets.progress import cycle_text, duration
from tui.widgets.text import (
    BAD,
    CARE,
    DIM,
    FAINT,
    STRONG,
    EventFeed,
    Numbered,
    bar,
    clock,
    markup_safe,
    percent,
    plain,
    short,
    size,
    with_keys,
)
from tui.widgets.view import Answers, ApiQuestion, Pane

if TYPE_CHECKING:  # loaded with the first answer
    from appliance.client import MachineView, Status
    from appliance.client.nights import HeldOutNight

BAR = 7
MOST = 200
"""Number of events shown."""
SCARCE = ("memory", "disk")
"""Resources without which work stops."""
JOB_ORDER = ("running", "queued", "solved", "unsolved", "failed", "cancelled")
NIGHTS = 60
"""Nights read for the curve."""
LOW_ROWS, HIGH_ROWS = 4, 9
"""Lines of the curve's points on a short and on a tall terminal."""
ANSWER_LINES = 2
"""Maximum lines of an answer; more would leave no room for events on 24 lines."""
MARGIN = 11
"""Cells before an answer, taken by its name."""
EDGE = 2
"""Cells beside an event, taken by the scroll bar."""
FULL = 0.95
"""Share of memory or disk in use from which it is named as wrong."""
ALARMS = ("failure", "warning")
"""Kinds of events that report a fault."""
REPEATED = ("step", "warm_start", "selftest", "watch", "sampling")
"""Kinds of events that report progress; only the newest of a phase is listed."""


class NowPane(Pane):
    FILTER = "words of an event"
    KEYS = (("up, down", "scroll the events"),)

    def __init__(self, **given: str) -> None:
        super().__init__(**given)  # type: ignore[arg-type]
        self._feed = EventFeed()
        self._events: Sequence[Numbered] = ()
        self._nights: Sequence[HeldOutNight] | None = None
        self._measured: tuple[str | None, ...] = ()
        """Cycle, phase and decision of the status: the nights' success changes only with them."""

    def compose(self) -> ComposeResult:
        yield PlainText(id="cycle")
        curve = PlainText(id="now-nights", classes="box")
        curve.border_title, curve.border_subtitle = TITLE, LEGEND
        yield curve
        yield PlainText(id="now-waits", classes="answer")
        yield PlainText(id="now-wrong", classes="answer")
        yield PlainText(id="now-load", classes="answer")
        with Horizontal(id="now-boxes"):
            for name in ("work", "machine", "queue"):
                box = PlainText(id=f"now-{name}", classes="box")
                box.border_title = name
                yield box
        yield Detail(id="now-events")

    def questions(self) -> Mapping[str, ApiQuestion]:
        asked = {
            "events": ApiQuestion("events", self._feed.read),
            "machine": ApiQuestion("machine", lambda client, _: client.machine(), live=True, seconds=1.0),
        }
        if self._measured:
            key = ("held-out", *self._measured)
            asked["nights"] = ApiQuestion(key, lambda client, _: client.held_out(NIGHTS), fixed=True)
            asked["checks"] = ApiQuestion("checks", lambda client, _: client.open_validations(MOST), seconds=5.0)
        return asked

    def show(self, status: Status, answers: Answers) -> None:
        self._events = answers.get("events", self._events)
        self._nights = answers.get("nights", self._nights)
        self._measured = (
            *((status.cycle.id, status.cycle.phase) if status.cycle is not None else ("", "")),
            status.decision.id if status.decision is not None else None,
        )
        machine = answers.get("machine")
        cycle = self.query_one("#cycle", PlainText)
        width = max(40, cycle.content_size.width or self.app.size.width - 2)
        cycle.show(cycle_text(status, self._events, width))
        rows = HIGH_ROWS if self.app.size.height >= TALL else LOW_ROWS
        self.query_one("#now-nights", PlainText).show(night_curve(self._nights, width - 2, rows))
        waits = waits_for_you(status, len(answers.get("checks", ())), read_only=self.host.read_only)
        self.query_one("#now-waits", PlainText).show(
            answer_text("for you", waits, "nothing waits for you", CARE, width)
        )
        wrong = wrong_now(status, machine, self._events)
        self.query_one("#now-wrong", PlainText).show(answer_text("wrong", wrong, "nothing", BAD, width))
        self.query_one("#now-load", PlainText).show(load_text(status, machine, width))
        self.query_one("#now-work", PlainText).show(work_text(status))
        self.query_one("#now-machine", PlainText).show(machine_text(machine))
        self.query_one("#now-queue", PlainText).show(queue_text(status, machine))
        shown = events_with(self._events, self.filtered_by)
        events = self.query_one("#now-events", Detail)
        filtered = f"  / {self.filtered_by}" if self.filtered_by else ""
        events.border_title = markup_safe(f"events, newest first, times in UTC{filtered}")
        listed = shown[::-1] if self.filtered_by else without_repeats(shown[::-1])
        room = 0 if self.app.size.height >= TALL else width - EDGE
        events.show_detail(events_text(listed[:MOST], self.filtered_by, width=room), moved=False)


def answer_text(name: str, answers: Sequence[str], none: str, style: str, width: int) -> Text:
    """Lists answers to one question beside its name, in at most two lines of `width` cells; `none` without any."""
    said = [plain(one).plain for one in answers]
    parts = said if len(said) <= ANSWER_LINES else ["; ".join(said)]
    each = ANSWER_LINES // max(1, len(parts))
    lines = [
        line
        for part in parts or [none]
        for line in textwrap.wrap(part, width - MARGIN, max_lines=each, placeholder=" …")
    ]
    text = Text(f"{name:<{MARGIN}}", DIM)
    text.append(f"\n{' ' * MARGIN}".join(lines), style if said else DIM)
    return text


def waits_for_you(status: Status, checks: int, *, read_only: bool = False) -> list[str]:
    """Returns what waits for a person, each with the key to press, the most important first."""
    found = []
    if (candidate := status.aliases.get("candidate")) is not None and status.candidate_waits_for:
        said = status.candidate_waits_for if read_only else with_keys(status.candidate_waits_for)
        found.append(f"candidate {short(candidate)} {said}")
    if checks:
        found.append(f"7: {checks} check{' waits' if checks == 1 else 's wait'} for your validation")
    if status.cycle is not None and status.cycle.state == "set_aside":
        found.append(f"a parked night: `assay cycle resume {status.cycle.id}`")
    if parked := status.jobs.get("set_aside", 0):
        found.append(f"6: {parked} parked job{'' if parked == 1 else 's'}, `assay jobs resume`")
    return [*found, *([status.nights] if status.nights else [])]


def wrong_now(status: Status, machine: MachineView | None, events: Sequence[Numbered]) -> list[str]:
    """Returns what is wrong now, the most severe first."""
    cycle, worker = status.cycle, status.worker
    found = [f"tampered with: {status.tampered}"] if status.tampered else []
    if worker.state == "backing_off":
        found.append(f"the worker failed {worker.failures} times: {worker.last_failure}")
    if cycle is not None and cycle.state in ("failed", "set_aside"):
        found.append(f"{cycle.id} {'failed' if cycle.state == 'failed' else 'is parked'}, see above")
    found += [said for said in (worker.waits_for, status.cycles_wait_for) if said]
    if machine is not None:
        used = 1 - machine.memory_available / max(1, machine.memory_total)
        filled = 1 - machine.disk_free / max(1, machine.disk_total)
        found += [
            f"{name} {100 * share:.0f} % full" for name, share in (("memory", used), ("disk", filled)) if share > FULL
        ]
    warnings = [one for _, one in events if one.kind in ALARMS and cycle is not None and one.created >= cycle.created]
    if warnings:
        more = f" and {len(warnings) - 1} more, 9 e lists them" if len(warnings) > 1 else ""
        found.append(f"{warnings[-1].kind}: {warnings[-1].text}{more}")
    return found


def load_text(status: Status, machine: MachineView | None, width: int) -> Text:
    """Sums up machine and queue in one line, for terminals too short for their boxes."""
    parts = [f"{status.jobs.get('running', 0)} jobs running, {status.jobs.get('queued', 0)} queued"]
    if machine is not None:
        used = 1 - machine.memory_available / max(1, machine.memory_total)
        busy = f"cpu {100 * machine.cpu:.0f} %" if machine.cpu is not None else f"load {machine.load:.1f}"
        parts.append(busy)
        parts += [
            f"gpu {place} {100 * gpu.busy:.0f} %" for place, gpu in enumerate(machine.gpus) if gpu.busy is not None
        ]
        parts += [f"memory {100 * used:.0f} %", f"disk {whole_size(machine.disk_free)} left"]
    text = Text(f"{'load':<{MARGIN}}", DIM)
    return text.append_text(plain("  ".join(parts), limit=width - MARGIN))


def work_text(status: Status) -> Text:
    text = Text()
    worker = status.worker
    sign, style = {"idle": ("· idle", DIM), "running": ("▸ running", STRONG), "backing_off": ("! backs off", BAD)}[
        worker.state
    ]
    text.append(sign, style)
    if worker.doing:
        text.append_text(plain(f"  {worker.doing}", limit=40))
    text.append("\n")
    figures = status.step_metrics
    seconds = figures.get("sampling_seconds", 0.0)
    if seconds > 0:
        _pair(text, "tokens", f"{figures.get('tokens', 0.0) / seconds:,.0f} a second")
        _pair(text, "calls", f"{figures.get('tool_calls', 0.0) / seconds:,.1f} a second")
    if "success" in figures:
        _pair(text, "success", percent(figures["success"]))
    if "tool_errors_in_correct" in figures:
        _pair(text, "errors", f"{percent(figures['tool_errors_in_correct'])} of calls")
    _pair(text, "up", duration(status.uptime_seconds))
    if status.broker_news:
        _pair(text, "broker", status.broker_news)
    return text


def machine_text(machine: MachineView | None) -> Text:
    if machine is None:
        return plain("reading …", DIM)
    text = Text()
    if machine.cpu is None:
        _pair(text, "cpu", f"{machine.cores} cores, load {machine.load:.1f}")
    else:
        _share(text, "cpu", machine.cpu, f"of {machine.cores} cores")
    used = machine.memory_total - machine.memory_available
    _share(text, "memory", used / max(1, machine.memory_total), f"of {size(machine.memory_total)}")
    filled = 1 - machine.disk_free / max(1, machine.disk_total)
    _share(text, "disk", filled, f"{whole_size(machine.disk_free)} left")
    for number, gpu in enumerate(machine.gpus):
        memory = f"{size(gpu.used_bytes)} of {size(gpu.total_bytes)}  {gpu.name}"
        if gpu.busy is None:
            _pair(text, f"gpu {number}", f"load unknown, {memory}")
        else:
            _share(text, f"gpu {number}", gpu.busy, memory)
    if not machine.gpus:
        _pair(text, "gpu", "none")
    for process in machine.processes:
        name = "daemon" if process.name == "core" else process.name
        _pair(text, name, f"{whole_size(process.memory_bytes)}, {duration(process.cpu_seconds)} cpu")
    return text


def queue_text(status: Status, machine: MachineView | None) -> Text:
    text = Text()
    jobs = {name: status.jobs.get(name, 0) for name in JOB_ORDER}
    waiting = jobs["queued"] + jobs["running"]
    _pair(text, "jobs", f"{jobs['running']} running, {jobs['queued']} queued" if waiting else "none waiting")
    _pair(
        text,
        "ended",
        ", ".join(f"{count} {name}" for name, count in jobs.items() if count and name not in ("running", "queued"))
        or "none yet",
    )
    if aside := status.jobs.get("set_aside", 0):
        _pair(text, "set aside", f"{aside}: `assay jobs resume`")
    if status.next_cycle:
        _pair(text, "next", f"{status.next_cycle[:10]} {clock(status.next_cycle)} UTC")
    broker = machine.sandboxes if machine is not None else None
    if broker is None:
        idle = status.worker.state == "idle"
        none = "none: no broker runs" if idle else "no broker answers"
        _pair(text, "sandboxes", none if machine is not None else "reading …")
    else:
        _pair(text, "sandboxes", f"{broker.get('boxes', 0):.0f}, {broker.get('ready_copies', 0):.0f} ready")
        _pair(text, "waiting", f"{broker.get('waiting', 0):.0f} for a sandbox")
        _pair(text, "snapshots", f"{broker.get('snapshots', 0):.0f}, {size(broker.get('snapshot_bytes', 0))}")
    return text


def events_with(events: Sequence[Numbered], wanted: str) -> list[Numbered]:
    """Returns the events whose kind or text contains `wanted`, in their order."""
    return [one for one in events if wanted.casefold() in f"{one[1].kind} {one[1].text}".casefold()]


def without_repeats(events: Sequence[Numbered]) -> list[Numbered]:
    """Drops reports of progress that a later one of the same phase replaces. Events come newest first."""
    listed, known = [], set()
    for numbered in events:
        kind = numbered[1].kind
        if kind in REPEATED:
            if kind in known:
                continue
            known.add(kind)
        elif kind in ("phase", "cycle"):
            known.clear()
        listed.append(numbered)
    return listed


def events_text(events: Sequence[Numbered], wanted: str = "", *, width: int = 0) -> Text:
    """Lists events of the daemon in the given order; `wanted` is the filter that they passed. With `width` each takes
    one line of as many cells."""
    if not events:
        return plain(
            "No event matches." if wanted else "No event yet: nights, jobs and decisions are listed here.", DIM
        )
    lines = []
    for _, event in events:
        line = plain(f"{event.created[5:19].replace('T', ' ')}  ", DIM)
        line.append_text(plain(f"{event.kind:<11} ", CARE if event.kind in (*ALARMS, "governance") else DIM))
        line.append_text(plain(event.text, limit=400))
        if width:
            line.truncate(width, overflow="ellipsis")
        lines.append(line)
    return Text("\n").join(lines)


def whole_size(count: float) -> str:
    """Formats a number of bytes with a unit and without a fraction, for a narrow box."""
    number, unit = size(count).split()
    return f"{float(number):.0f} {unit}"


def _pair(text: Text, name: str, value: str) -> None:
    text.append(f"{name:<9} ", DIM)
    text.append_text(plain(value))
    text.append("\n")


def _share(text: Text, name: str, share: float, more: str) -> None:
    text.append(f"{name:<9} ", DIM)
    text.append_text(bar(share, BAR, BAD if share > 0.95 and name in SCARCE else "bold"))
    text.append(f" {100 * share:2.0f} %, ")
    text.append_text(plain(more, FAINT if not more else DIM))
    text.append("\n")
