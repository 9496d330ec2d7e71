"""`assay cycle`: nights, by hand."""

from __future__ import annotations

from typing import Annotated

import typer

from appliance.cli.options import Data, Json, Limit, client_of
from appliance.cli.show import short, show_fields, show_json, show_line, show_records
from appliance.client import StartCycle
from appliance.errors import UsageError

app = typer.Typer(help="Start a cycle now, list the cycles, show one.", no_args_is_help=True)


@app.command("start")
def start(
    context: typer.Context,
    seed: Annotated[int | None, typer.Option("--seed", min=0, help="Otherwise the next one.")] = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Start a night now. An unfinished cycle continues instead."""
    cycle = client_of(context, data).start_cycle(StartCycle(seed=seed))
    if as_json:
        show_json(cycle)
    else:
        show_line(f"cycle {cycle.id} is running (seed {cycle.seed}, phase {cycle.phase}); see `assay status`")


@app.command("show")
def show(
    context: typer.Context,
    cycle: Annotated[str, typer.Argument(help="Its id; the newest unless given.")] = "",
    data: Data = None,
    as_json: Json = False,
) -> None:
    """One cycle: where it is, where its time went, how it learned, and what was decided."""
    api = client_of(context, data)
    if not cycle:
        newest = api.cycles(1)
        if not newest:
            raise UsageError("there is no cycle yet", "`assay cycle start` starts one")
        cycle = newest[0].id
    found = api.cycle(cycle)
    if as_json:
        show_json(found)
        return
    one, last = found.cycle, found.steps[-1] if found.steps else {}
    show_fields(
        [
            ("cycle", f"{one.id}, seed {one.seed}"),
            ("state", f"{one.state.value}" + ("" if one.phase == one.state.value else f", {one.phase}")),
            ("failure", one.failure),
            ("begun", one.created[:19]),
            ("seconds", ", ".join(f"{phase} {seconds:.0f}" for phase, seconds in one.seconds.items())),
            ("rollouts", ", ".join(f"{purpose} {count}" for purpose, count in found.rollouts.items())),
            ("steps", f"{len(found.steps)}, the last with {100 * last['success']:.0f} % right" if last else ""),
            ("checkpoints", ", ".join(f"{short(made.manifest)} ({made.stage})" for made in found.checkpoints)),
            ("decision", ", ".join(f"{made.outcome.value}: {made.reason}" for made in found.decisions)),
        ]
    )


@app.command("ls")
def ls(context: typer.Context, limit: Limit = 20, data: Data = None, as_json: Json = False) -> None:
    """The cycles, newest first."""
    show_records(
        client_of(context, data).cycles(limit),
        ("cycle", "kind", "seed", "state", "phase", "seconds", "failure"),
        lambda c: (c.id, c.kind, c.seed, c.state.value, c.phase, f"{sum(c.seconds.values()):.0f}", c.failure),
        empty="no cycle yet: `assay cycle start` starts one",
        as_json=as_json,
    )
