"""`assay logs`: events of the daemon, and logs of its worker, broker and gateway."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from enum import StrEnum
from itertools import chain
from pathlib import Path
from typing import Annotated

import typer

from appliance.cli.shell.options import Limit, api_client, data_folder
from appliance.cli.show.printing import in_data_folder, show_line
from appliance.client.api_client import ApiClient
from appliance.client.failures import DaemonNotRunning
from appliance.client.messages import LogPart
from appliance.records.cycles import Event

FOLLOW_SECONDS = 0.5
OF_A_STEP = {
    "success": "success {:.2f}",
    "groups_with_signal": "{:.0f} groups with signal",
    "tool_errors_in_correct": "tool errors in correct {:.3f}",
    "tokens": "{:,.0f} tokens",
    "sampling_seconds": "sampling {:.0f} s",
    "learning_seconds": "learning {:.0f} s",
}
PROGRESS = frozenset({"step", "steps"})
"""Figures that an event's text already contains."""
SAID = {"watch": frozenset({"success"})}
"""Further such figures by kind of event."""


class LogSource(StrEnum):
    DAEMON = "daemon"
    WORKER = "worker"
    BROKER = "broker"
    GATEWAY = "gateway"


@in_data_folder
def logs(
    source: Annotated[LogSource, typer.Argument(help="Source.")] = LogSource.DAEMON,
    limit: Limit = 50,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Follow new lines until Ctrl-C.")] = False,
) -> None:
    """Show the last lines of the daemon, its worker, its broker or its gateway.

    Example: assay logs worker --follow
    """
    api = api_client()
    lines = event_lines(api, limit) if source is LogSource.DAEMON else _file_lines(api.log, source, limit)
    try:
        first = next(lines)
    except DaemonNotRunning:
        folder = data_folder()
        if not (folder / "ledger.sqlite3").exists():
            raise
        lines = _on_disk(folder, source, limit)
        first = next(lines)
        typer.echo("the daemon is not running: reading its data folder", err=True)
    shown = 0
    for line in chain((first,), lines):
        if line is not None:
            shown += 1
            show_line(line)
        elif not follow:
            if not shown:
                typer.echo(f"the {source.value} has logged nothing yet", err=True)
            return
        else:
            time.sleep(FOLLOW_SECONDS)


def event_lines(api: ApiClient, limit: int, *, after: int | None = None, since: str = "") -> Iterator[str | None]:
    """Yields the daemon's newest events and all later ones, one line each; None whenever no further one exists yet.
    Events before the time `since` are left out."""
    after = max(0, api.status().last_event - limit) if after is None else after
    while True:
        found = api.events(after=after)
        for numbered in found:
            after = numbered.number
            if numbered.event.created >= since:
                yield event_line(numbered.event)
        if not found:  # after a whole page there may be more
            yield None


def event_line(event: Event) -> str:
    """Formats a daemon event as a line; a training step shows only its main figures, the screen *Learning* all."""
    if event.kind == "step":
        told = [form.format(event.figures[name]) for name, form in OF_A_STEP.items() if name in event.figures]
    else:
        said = PROGRESS | SAID.get(event.kind, frozenset())
        told = [f"{name} {value:g}" for name, value in event.figures.items() if name not in said]
    return f"{event.created[:19]}  {event.kind}: {event.text}" + (f" ({', '.join(told)})" if told else "")


def _on_disk(data: Path, source: LogSource, limit: int) -> Iterator[str | None]:
    """Yields the lines of `assay logs` from the data folder, without the daemon. Raises LedgerError."""
    from appliance.daemon.processes.child_log import log_part
    from appliance.ledger.read_only import ReadOnlyLedger

    def part(process: str, *, after: int | None = None, limit: int = 1000) -> LogPart:
        return log_part(data / "logs" / f"{process}.log", after=after, lines=limit)

    with ReadOnlyLedger(data / "ledger.sqlite3") as ledger:
        if source is not LogSource.DAEMON:
            yield from _file_lines(part, source, limit)
        after = max(0, ledger.newest_event() - limit)
        while True:
            found = ledger.events(after=after)
            for number, event in found:
                after = number
                yield event_line(event)
            if not found:
                yield None


def _file_lines(log: Callable[..., LogPart], source: LogSource, limit: int) -> Iterator[str | None]:
    part = log(source.value, limit=limit)
    while True:
        yield from part.lines
        yield None
        part = log(source.value, after=part.position)
