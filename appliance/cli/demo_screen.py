"""How the demonstration looks: one line of progress while it runs, one screen at its end.

Text from the policy model or a guest is escaped here; nothing is interpreted as markup.
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from appliance.cli.demo_report import DemoReport
from appliance.client.printable import printable
from appliance.records import Event

PHASES = ("prepare", "warm_start", "training", "evaluation", "decision", "job", "verify")
NAMES = {"warm_start": "warm start"}


class DemoProgress:
    """A line for each phase; on something that is no terminal, plain lines as they happen."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live = console.is_terminal
        self._progress = Progress(
            SpinnerColumn(finished_text="[green]✓[/green]"),
            TextColumn("{task.fields[name]:<11}"),
            BarColumn(bar_width=24),
            TimeElapsedColumn(),
            TextColumn("{task.fields[note]}", markup=False),
            console=console,
            disable=not self._live,
        )
        self._tasks: dict[str, TaskID] = {}
        self._now = ""

    def __enter__(self) -> DemoProgress:
        self._progress.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._progress.stop()

    def see(self, event: Event) -> None:
        """Shows one event of the ledger."""
        if event.kind == "phase":
            self.begin(event.text)
        elif event.kind in ("step", "warm_start", "watch", "evaluation", "resume", "warning", "worker", "failure"):
            self.note(describe(event), event.figures.get("step"), event.figures.get("steps"))

    def begin(self, phase: str) -> None:
        if self._now and self._now in self._tasks:
            task = self._tasks[self._now]
            self._progress.update(task, total=1, completed=1, refresh=True)
            self._progress.stop_task(task)
        self._now = phase
        if phase not in PHASES:
            return
        if not self._live:
            self._console.print(f"{NAMES.get(phase, phase)}:", markup=False)
        elif phase not in self._tasks:
            self._tasks[phase] = self._progress.add_task("", total=None, name=NAMES.get(phase, phase), note="")

    def note(self, text: str, done: float | None = None, total: float | None = None) -> None:
        if not self._live:
            self._console.print(f"  {text}", markup=False, highlight=False)
        elif self._now in self._tasks:
            self._progress.update(self._tasks[self._now], completed=done, total=total, note=text)


def describe(event: Event) -> str:
    figures = event.figures
    if event.kind == "step":
        return (
            f"{event.text} · success {figures.get('success', 0):.2f} · tool errors in correct "
            f"{figures.get('tool_errors_in_correct', 0):.3f}"
        )
    if event.kind == "warm_start" and "loss" in figures:
        validated = f" · validation success {figures['success']:.2f}" if figures.get("success") else ""
        return f"{event.text} · loss {figures['loss']:.3f}{validated}"
    return event.text


def screen(report: DemoReport, commands: Sequence[str]) -> RenderableType:
    """The one screen at the end."""
    return Group(
        Panel(_figures(report), title=f"one night · cycle {report.cycle}", title_align="left"),
        Panel(_decision(report), title="decision about the candidate", title_align="left"),
        Panel(_job(report), title="job", title_align="left"),
        Panel(Text("\n".join(commands)), title="next, try", title_align="left"),
    )


def _figures(report: DemoReport) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim")
    table.add_column()
    table.add_row(
        f"success on {report.sealed_items} sealed questions",
        f"{_share(report.success_before, report.success_before_low, report.success_before_high)}  →  "
        f"{_share(report.success_after, report.success_after_low, report.success_after_high)}",
    )
    table.add_row(
        "gain, paired", f"{report.gain:+.1f} points  [{report.gain_low:+.1f}, {report.gain_high:+.1f}] at 95 %"
    )
    table.add_row("greedy, beside it", f"{report.greedy_before:.3f}  →  {report.greedy_after:.3f}")
    table.add_row(
        "tool errors inside correct rollouts",
        f"{report.tool_errors_in_correct_before:.3f}  →  {report.tool_errors_in_correct_after:.3f}",
    )
    table.add_row(
        "by family",
        ", ".join(f"{row.family} {row.before:.2f}→{row.after:.2f}" for row in report.families),
    )
    table.add_row(
        "speed",
        f"{report.tokens_per_second:,.0f} tokens, {report.tool_calls_per_second:,.0f} tool calls a second of sampling",
    )
    table.add_row(
        "tool calls", f"{report.tool_calls:,}, of them outside a gVisor sandbox: {report.tool_calls_outside_sandbox}"
    )
    table.add_row("where the time went", _time(report))
    return table


def _share(value: float, low: float, high: float) -> str:
    return f"{value:.3f} [{low:.3f}, {high:.3f}]"


def _time(report: DemoReport) -> str:
    phases = ", ".join(f"{NAMES.get(name, name)} {spent:.0f} s" for name, spent in report.seconds_by_phase.items())
    inside = ", ".join(f"{name} {spent:.0f} s" for name, spent in report.seconds_in_training.items())
    return f"{report.seconds:.0f} s in all: {phases}\n(training: {inside})"


def _decision(report: DemoReport) -> Group:
    table = Table.grid(padding=(0, 2))
    for _ in range(3):
        table.add_column()
    for finding in report.findings:
        table.add_row(finding.gate, Text(finding.outcome.value, style=_STYLES[finding.outcome.value]), finding.reason)
    lines: list[RenderableType] = [Text(report.decision.upper(), style="bold"), table]
    if report.would_change:
        lines.append(Text(f"what would change it: {report.would_change}", style="dim"))
    return Group(*lines)


_STYLES = {"passed": "green", "failed": "red", "undecided": "yellow"}


def _job(report: DemoReport) -> Text:
    text = Text(f"{report.question}  →  {report.job_state}")
    if report.bundle:
        word = "re-checked in a fresh process" if report.verified else "NOT accepted by `assay verify`"
        text.append(f": {printable(report.answer)}, {report.job_reason}, {word}\nbundle: {report.bundle}")
    else:
        text.append(f": {report.job_reason}")
    return text
