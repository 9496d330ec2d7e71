"""`assay curriculum stats`: pass rates by taskset and level, night by night.

Invariants: the daemon counts one cycle at a time. Nothing relies on colour alone, and pipes and NO_COLOR get none.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from appliance.cli.shell.options import api_client
from appliance.cli.show.printing import Output, prints, show_line, show_progress
from appliance.client.pass_rates import HIGH, LOW, NONE, RateLine, block, lines_of, zone
from appliance.records.rollouts import Purpose
from appliance.text.printable import printable

if TYPE_CHECKING:
    from appliance.client import ApiClient, PassCount

SECONDS = 120.0


@prints
def stats(
    cycle: Annotated[str | None, typer.Option("--cycle", help="Only this cycle, by its id or a prefix.")] = None,
    family: Annotated[str | None, typer.Option("--family", help="Only this taskset.")] = None,
    purpose: Annotated[Purpose, typer.Option("--purpose", help="Purpose of the rollouts.")] = Purpose.TRAIN,
    limit: Annotated[int, typer.Option("--limit", min=1, max=1000, help="Number of newest cycles.")] = 14,
    png: Annotated[
        Path | None, typer.Option("--png", metavar="FILE", help="Also draw a picture into this file.")
    ] = None,
) -> Output[list[PassCount]]:
    """Show how often the model passes, by taskset and level, night by night.

    Example: assay curriculum stats --png rates.png
    """
    if png is not None:
        from appliance.cli.curriculum.plot import require_plots

        require_plots(png)
    api = api_client(timeout_seconds=SECONDS)
    cycles, counts = _counted(api, cycle, limit)
    known = sorted({one.family for one in counts})
    counts = [one for one in counts if one.purpose is purpose and family in (None, one.family)]
    lines = lines_of(counts)
    cycles = [name for name in cycles if any(line.rollouts[name] for line in lines)]
    if png is not None and lines:
        from appliance.cli.curriculum.plot import draw

        draw(png, cycles, lines)
    if not lines:
        return Output(counts, _nothing(cycle, family, purpose, known))

    def show() -> None:
        _show(cycles, lines)
        if png is not None:
            show_line(f"drawn into {png}")

    return Output(counts, show)


def _counted(api: ApiClient, cycle: str | None, limit: int) -> tuple[list[str], list[PassCount]]:
    """Returns the newest cycles, or the named one, oldest first, with the daemon's pass counts for each."""
    names = [api.cycle(cycle).cycle.id] if cycle is not None else [one.id for one in reversed(api.cycles(limit))]
    counts: list[PassCount] = []
    for place, name in enumerate(names, 1):
        show_progress(f"counting {name}, {place} of {len(names)}")
        counts += api.pass_counts(name)
    show_progress("")
    return names, counts


def _show(cycles: Sequence[str], lines: Sequence[RateLine]) -> None:
    coloured = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    width = max(len("taskset, level"), *(len(printable(line.name)) for line in lines))
    history = max(len("nights"), len(cycles))
    states = max(len("sampler"), *(len(line.state) for line in lines))
    head = f"{'taskset, level':<{width}}  {'nights':<{history}}  {'newest':>7}  {'change':>7}  rollouts"
    typer.echo(f"{head}  {'sampler':<{states}}  rate")
    for line in lines:
        rates = [line.rate(cycle) for cycle in cycles]
        known = [rate for rate in rates if rate is not None]
        change = f"{100 * (known[-1] - known[0]):+.1f}" if len(known) > 1 else ""
        drawn = "".join(map(block, rates))
        if coloured and (colour := {"hard": typer.colors.YELLOW, "easy": typer.colors.BLUE}.get(zone(known[-1]))):
            shown = typer.style(f"{drawn:<{history}}", fg=colour)
        else:
            shown = f"{drawn:<{history}}"
        total = sum(line.rollouts.values())
        text = f"{printable(line.name):<{width}}  {shown}  {100 * known[-1]:5.1f} %  {change:>7}  {total:>8}"
        typer.echo(f"{text}  {printable(line.state):<{states}}  {zone(known[-1])}".rstrip())
    first, last = cycles[0], cycles[-1]
    nights = f"{len(cycles)} cycles, {first} to {last}" if len(cycles) > 1 else first
    show_line(f"{nights}; hard is below {100 * LOW:.0f} %, easy above {100 * HIGH:.0f} %; {NONE} not asked")
    if any(line.state for line in lines):
        show_line("sampler: present rating of the level by `recipe.training.difficulty`")


def _nothing(cycle: str | None, family: str | None, purpose: Purpose, known: Sequence[str]) -> str:
    if family is not None and known and family not in known:
        return f"no rollout of taskset {family}; known: {', '.join(known)}"
    if cycle or family or purpose is not Purpose.TRAIN:
        return "no such rollout: list rollouts with `assay rollouts ls`"
    return "no night yet: start one with `assay cycle start`, or try tasks yourself with `assay curriculum try NAME`"
