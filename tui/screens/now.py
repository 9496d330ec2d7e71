"""The screen Now: running work, speed, machine load, queue, and the newest events."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rich.text import Text
from textual.app import ComposeResult
from textual.containers import Horizontal

from tui.widgets.panels import Detail, PlainText
from tui.widgets.progress import cycle_text
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
)
from tui.widgets.view import Answers, ApiQuestion, Pane

if TYPE_CHECKING:  # loaded with the first answer
    from appliance.client import MachineView, Status

BAR = 7
CANDIDATE_LINES = 2
"""Maximum lines for the candidate; more would leave no room for events on 24 lines."""
MOST = 200
"""Number of events shown."""
SCARCE = ("memory", "disk")
"""Resources without which work stops."""
JOB_ORDER = ("running", "queued", "solved", "unsolved", "failed", "cancelled")


class NowPane(Pane):
    FILTER = "words of an event"
    KEYS = (("up, down", "scroll the events"),)

    def __init__(self, **given: str) -> None:
        super().__init__(**given)  # type: ignore[arg-type]
        self._feed = EventFeed()
        self._events: Sequence[Numbered] = ()

    def compose(self) -> ComposeResult:
        yield PlainText(id="cycle")
        yield PlainText(id="now-candidate")
        with Horizontal(id="now-boxes"):
            for name in ("work", "machine", "queue"):
                box = PlainText(id=f"now-{name}", classes="box")
                box.border_title = name
                yield box
        yield Detail(id="now-events")

    def questions(self) -> Mapping[str, ApiQuestion]:
        return {
            "events": ApiQuestion("events", self._feed.read),
            "machine": ApiQuestion("machine", lambda client, _: client.machine(), live=True, seconds=1.0),
        }

    def show(self, status: Status, answers: Answers) -> None:
        self._events = answers.get("events", self._events)
        cycle, candidate = self.query_one("#cycle", PlainText), self.query_one("#now-candidate", PlainText)
        width = max(40, cycle.content_size.width or self.app.size.width - 2)
        cycle.show(cycle_text(status, self._events, width))
        waits = candidate_text(status, width)
        candidate.display = bool(waits)
        candidate.show(waits)
        self.query_one("#now-work", PlainText).show(work_text(status))
        self.query_one("#now-machine", PlainText).show(machine_text(answers.get("machine")))
        self.query_one("#now-queue", PlainText).show(queue_text(status, answers.get("machine")))
        shown = events_with(self._events, self.filtered_by)[-MOST:]
        events = self.query_one("#now-events", Detail)
        filtered = f"  / {self.filtered_by}" if self.filtered_by else ""
        events.border_title = markup_safe(f"events, newest first, times in UTC{filtered}")
        events.show_detail(events_text(shown[::-1], self.filtered_by), moved=False)


def candidate_text(status: Status, width: int) -> Text:
    """Returns the reason why the candidate waits, in at most two lines of `width` cells; empty without one."""
    candidate = status.aliases.get("candidate")
    if candidate is None or not status.candidate_waits_for:
        return Text()
    name = f"candidate {short(candidate)}  "
    said = plain(status.candidate_waits_for).plain
    lines = textwrap.wrap(f"{name}{said}", width, max_lines=CANDIDATE_LINES, placeholder=" …")
    text = plain("\n".join(lines), CARE, lines=True)
    text.stylize(DIM, 0, len("candidate "))
    return text


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


def events_text(events: Sequence[Numbered], wanted: str = "") -> Text:
    """Lists events of the daemon in the given order; `wanted` is the filter that they passed."""
    if not events:
        return plain("No event matches." if wanted else "No event yet.", DIM)
    text = Text()
    for _, event in events:
        text.append_text(plain(f"{event.created[5:19].replace('T', ' ')}  ", DIM))
        text.append_text(
            plain(f"{event.kind:<11} ", CARE if event.kind in ("failure", "warning", "governance") else DIM)
        )
        text.append_text(plain(event.text, limit=400))
        text.append("\n")
    return text


def whole_size(count: float) -> str:
    """Formats a number of bytes with a unit and without a fraction, for a narrow box."""
    number, unit = size(count).split()
    return f"{float(number):.0f} {unit}"


def duration(seconds: float) -> str:
    """Formats seconds as `42 s`, `12 min`, `3 h 20 min` or `4 days`."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    if seconds < 7200:
        return f"{seconds / 60:.0f} min"
    if seconds < 172_800:
        return f"{int(seconds // 3600)} h {int(seconds % 3600 // 60)} min"
    return f"{seconds / 86_400:.0f} days"


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
