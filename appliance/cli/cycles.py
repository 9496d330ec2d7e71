"""`assay cycle`: nights, by hand."""

from __future__ import annotations

from typing import Annotated

import typer

from appliance.cli.options import Data, Json, Limit, client_of
from appliance.cli.show import show_json, show_line, show_records
from appliance.client import StartCycle

app = typer.Typer(help="Start a cycle now, list the cycles.", no_args_is_help=True)


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
