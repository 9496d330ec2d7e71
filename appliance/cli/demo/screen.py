"""Display of the demonstration: a progress line while it runs, one screen at its end.

Text from the policy model or a guest is escaped here; nothing is interpreted as markup.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence

from rich.console import Console, ConsoleOptions, ConsoleRenderable, Group, RenderableType, RenderHook, RenderResult
from rich.control import Control
from rich.padding import Padding
from rich.panel import Panel
from rich.progress import BarColumn, Progress, ProgressColumn, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.segment import ControlType, Segment
from rich.table import Table
from rich.text import Text

from appliance.cli.demo.report import DemoReport, FamilyRow
from appliance.cli.shell.live_line import rows_of
from appliance.client.gate_figures import figure_in_words, needed_in_words
from appliance.records.cycles import Event
from appliance.text.printable import printable

PHASES = ("prepare", "warm_start", "training", "evaluation", "decision", "job", "verify")
NAMES = {"warm_start": "warm start"}
SHARES = {"prepare": 0.01, "warm_start": 0.33, "training": 0.60, "evaluation": 0.04, "decision": 0.0, "job": 0.02}
"""Share of the total time by phase, as measured (benchmarks/README.md)."""
PACE_SECONDS = 90.0
"""Length of the recent past that determines the current pace, in seconds."""
BAR = 16
ENOUGH = 0.02
"""Share of the work that must be done before the remaining time is estimated."""


class RemainingTime:
    """Estimates the remaining time of a demonstration. Phases have fixed shares, and the pace of the last minutes gives
    the speed."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._seen: deque[tuple[float, float]] = deque()
        self._phase = ""

    def seconds(self, event: Event) -> float | None:
        """Returns the estimated seconds to the demonstration's end, after an event; None if the event has no
        progress."""
        if event.kind == "phase":
            self._phase, within = event.text, 0.0
        elif "steps" in event.figures and event.kind in ("step", "warm_start", "evaluation"):
            within = min(1.0, event.figures["step"] / max(1.0, event.figures["steps"]))
        else:
            return None
        if self._phase not in SHARES:
            return None
        before = list(SHARES).index(self._phase)
        done = sum(list(SHARES.values())[:before]) + within * SHARES[self._phase]
        now = self._clock()
        self._seen.append((done, now))
        # What is older is left out, as long as enough is left to say anything.
        while len(self._seen) > 2 and now - self._seen[1][1] >= PACE_SECONDS and done - self._seen[1][0] >= ENOUGH:
            self._seen.popleft()
        seen, spent = done - self._seen[0][0], now - self._seen[0][1]
        return (1 - done) * spent / seen if seen >= ENOUGH else None


def left(seconds: float) -> str:
    minutes = round(seconds / 60)
    return "less than a minute left" if minutes < 1 else f"about {minutes} minute{'s' if minutes > 1 else ''} left"


class LiveLines(Progress, RenderHook):
    """Progress lines that also clear rows created when a narrower terminal wraps them. Rich moves up only as many rows
    as it wrote lines."""

    def __init__(self, *columns: ProgressColumn, console: Console, disable: bool, auto_refresh: bool = True) -> None:
        super().__init__(*columns, console=console, disable=disable, auto_refresh=auto_refresh)
        self._widths: tuple[int, ...] = ()

    def start(self) -> None:
        self.console.push_render_hook(self)  # before that of Rich, which then clears first
        super().start()

    def stop(self) -> None:
        try:
            super().stop()
        finally:
            self.console.pop_render_hook()

    def get_renderables(self) -> Iterable[RenderableType]:
        """Yields each phase's line, and below it the newest message, in whole words."""
        for task in self.tasks:
            yield self.make_tasks_table([task])
            if note := task.fields["note"]:
                yield Padding(Text(printable(str(note))), (0, 0, 0, 2))

    def get_renderable(self) -> RenderableType:
        return _MeasuredLines(super().get_renderable(), self._drawn)

    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        more = rows_of(self._widths, self.console.width) - len(self._widths)
        cleared = Control(*((ControlType.CURSOR_UP, 1), (ControlType.ERASE_IN_LINE, 2)) * more)
        return [cleared, *renderables] if more else renderables

    def _drawn(self, widths: tuple[int, ...]) -> None:
        self._widths = widths


class _MeasuredLines:
    """Terminal lines without trailing blanks that report their widths when drawn."""

    def __init__(self, lines: RenderableType, drawn: Callable[[tuple[int, ...]], None]) -> None:
        self._lines = lines
        self._drawn = drawn

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        lines = [_without_end(line) for line in console.render_lines(self._lines, options, pad=False)]
        self._drawn(tuple(map(Segment.get_line_length, lines[: options.size.height])))
        for line in lines:
            yield from (*line, Segment.line())


def _without_end(line: list[Segment]) -> list[Segment]:
    kept = list(line)
    while kept and not kept[-1].text.rstrip(" "):
        kept.pop()
    return kept[:-1] + [Segment(one.text.rstrip(" "), one.style) for one in kept[-1:]]


class DemoProgress:
    """Progress display of a demonstration, a line for each phase; plain lines if the output is not a terminal."""

    def __init__(
        self, console: Console, clock: Callable[[], float] = time.monotonic, *, auto_refresh: bool = True
    ) -> None:
        """Creates the demonstration's progress display. `auto_refresh`: redraw several times a second instead of only
        on events."""
        self._console = console
        self._remaining = RemainingTime(clock)
        self._said = ""
        self._live = console.is_terminal
        self._progress = LiveLines(
            SpinnerColumn(finished_text="[green]✓[/green]"),
            TextColumn("{task.fields[name]:<11}"),
            BarColumn(bar_width=BAR),
            TimeElapsedColumn(),
            TextColumn("{task.fields[left]}", markup=False, style="dim"),
            console=console,
            disable=not self._live,
            auto_refresh=auto_refresh,
        )
        self._tasks: dict[str, TaskID] = {}
        self._now = ""

    def __enter__(self) -> DemoProgress:
        self._progress.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._progress.stop()

    def see(self, event: Event) -> None:
        """Shows one ledger event in the demonstration's progress: a new phase, or a note on the present one."""
        seconds = self._remaining.seconds(event)
        if event.kind == "phase":
            self.begin(event.text)
        elif event.kind in ("step", "warm_start", "watch", "evaluation", "resume", "warning", "worker", "failure"):
            self.note(describe(event), event.figures.get("step"), event.figures.get("steps"))
        if seconds is not None:
            self._say_left(left(seconds))

    def _say_left(self, text: str) -> None:
        if self._live:
            for phase, task in self._tasks.items():
                self._progress.update(task, left=text if phase == self._now else "")
        elif text != self._said:
            self._console.print(f"  {text}", markup=False, highlight=False)
        self._said = text

    def begin(self, phase: str) -> None:
        if self._now and self._now in self._tasks:
            task = self._tasks[self._now]
            self._progress.update(task, total=1, completed=1, left="", refresh=True)
            self._progress.stop_task(task)
        self._now = phase
        if phase not in PHASES:
            return
        if not self._live:
            self._console.print(f"{NAMES.get(phase, phase)}:", markup=False)
        elif phase not in self._tasks:
            self._tasks[phase] = self._progress.add_task("", total=None, name=NAMES.get(phase, phase), note="", left="")

    def note(self, text: str, done: float | None = None, total: float | None = None) -> None:
        if not self._live:
            self._console.print(f"  {text}", markup=False, highlight=False)
        elif self._now in self._tasks:
            self._progress.update(self._tasks[self._now], completed=done, total=total, note=text)


def describe(event: Event) -> str:
    figures = event.figures
    if event.kind == "step":
        if "success" not in figures:  # nothing was sampled for it
            return f"{event.text} · learned again from the record"
        return (
            f"{event.text} · success {figures['success']:.2f} · tool errors in correct "
            f"{figures.get('tool_errors_in_correct', 0):.3f}"
        )
    if event.kind == "warm_start" and "loss" in figures:
        validated = f" · validation success {figures['success']:.2f}" if figures.get("success") else ""
        return f"{event.text} · loss {figures['loss']:.3f}{validated}"
    return event.text


def screen(report: DemoReport, commands: Sequence[tuple[str, str]]) -> RenderableType:
    """Builds the demonstration's final screen: figures, decision, job and next commands. `commands` are pairs of a
    command and its purpose."""
    return Group(
        Panel(_figures(report), title=f"one night: {report.cycle}", title_align="left"),
        Panel(_decision(report), title="the candidate", title_align="left"),
        Panel(_job(report), title="a job", title_align="left"),
        Panel(_commands(commands), title="next, try", title_align="left"),
    )


def _figures(report: DemoReport) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=True, header_style="dim")
    table.add_column("")
    table.add_column(f"{report.sealed_items} sealed questions, sampled, 95 % intervals; before → after")
    before = _share(report.success_before, report.success_before_low, report.success_before_high)
    after = _share(report.success_after, report.success_after_low, report.success_after_high)
    base = ""
    if report.success_base is not None and report.success_base_low is not None and report.success_base_high is not None:
        base = _share(report.success_base, report.success_base_low, report.success_base_high)
    errors = f"{report.tool_errors_in_correct_before:.3f} → {report.tool_errors_in_correct_after:.3f}"
    rates = f"{report.tokens_per_second:,.0f} tokens/s and {report.tool_calls_per_second:,.0f} tool calls/s"
    spent_on = dict(report.seconds_by_phase)
    spent_on["job, verify and start-up"] = max(0.0, report.seconds - sum(spent_on.values()))
    phases = ", ".join(f"{NAMES.get(name, name)} {spent:.0f}" for name, spent in spent_on.items())
    inside = ", ".join(f"{name} {spent:.0f}" for name, spent in report.seconds_in_training.items())
    for name, text in {
        "no examples": f"{base}, the pretrained model" if base else "",
        "success": f"{before} → {after}",
        "gain": f"{report.gain:+.1f} points [{report.gain_low:+.1f}, {report.gain_high:+.1f}], paired",
        "greedy": f"{report.greedy_before:.3f} → {report.greedy_after:.3f}",
        "tool errors": f"{errors} of the calls inside correct rollouts",
        "families": ", ".join(map(_family, report.families)),
        "speed": f"{rates} while sampling",
        "tool calls": f"{report.tool_calls:,}, of them outside a sandbox: {report.tool_calls_outside_sandbox}",
        "seconds": f"{report.seconds:.0f}: {phases} (in training: {inside})",
    }.items():
        if text:
            table.add_row(name, text)
    return table


def _family(row: FamilyRow) -> str:
    base = "" if row.base is None else f"{row.base:.2f}→"
    return f"{row.family} {base}{row.before:.2f}→{row.after:.2f}"


def _share(value: float, low: float, high: float) -> str:
    return f"{value:.3f} [{low:.3f}, {high:.3f}]"


_STYLES = {"passed": "green", "failed": "red", "undecided": "yellow"}
_MARKS = {"passed": "✓", "failed": "✗", "undecided": "?"}


def _decision(report: DemoReport) -> Group:
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(overflow="fold", no_wrap=True)
    table.add_column()
    for finding in report.findings:
        outcome = finding.outcome.value
        figure, needed = figure_in_words(finding) or "-", needed_in_words(finding)
        table.add_row(
            Text(f"{_MARKS[outcome]} {finding.gate}", style=_STYLES[outcome]),
            Text.assemble(figure, (f", {needed}" if needed else "", "dim")),
        )
    verdict = Text(f"{report.decision}: {report.decision_reason}", style="bold")
    level = Text("[..]: at the gate's own level, which `assay model show` names", style="dim")
    lines: list[RenderableType] = [verdict, table, level]
    if report.would_change:
        lines.append(Text(f"would change it: {report.would_change}"))
    return Group(*lines)


def _job(report: DemoReport) -> Text:
    text = Text(f"{report.question}: {report.job_state}, {report.job_reason}")
    if report.bundle:
        result = (
            "accepted by `assay verify` in a fresh process" if report.verified else "NOT accepted by `assay verify`"
        )
        text.append(f"\nanswer {printable(report.answer)}, {result}\nbundle {report.bundle}")
    return text


def _commands(commands: Sequence[tuple[str, str]]) -> Group:
    return Group(*(Text.assemble((command, "bold"), f"\n  {purpose}") for command, purpose in commands))
