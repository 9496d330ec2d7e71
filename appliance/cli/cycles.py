"""`assay cycle`: nights, by hand."""

from __future__ import annotations

from typing import Annotated

import typer

from appliance.cli.options import Data, Json, Limit, client_of

app = typer.Typer(help="Start a cycle now, list the cycles.", no_args_is_help=True)


@app.command("start")
def start(
    context: typer.Context,
    seed: Annotated[int | None, typer.Option("--seed", min=0, help="Otherwise the next one.")] = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Start a night now. An unfinished cycle goes on instead."""
    from appliance.cli.show import show_json, show_line
    from appliance.client import StartCycle

    with client_of(context, data) as api:
        cycle = api.start_cycle(StartCycle(seed=seed))
    if as_json:
        show_json(cycle)
    else:
        show_line(f"cycle {cycle.id} is running (seed {cycle.seed}, phase {cycle.phase}); see `assay status`")


@app.command("ls")
def ls(context: typer.Context, limit: Limit = 20, data: Data = None, as_json: Json = False) -> None:
    """The cycles, newest first."""
    from appliance.cli.show import show_json, show_table

    with client_of(context, data) as api:
        cycles = api.cycles(limit)
    if as_json:
        show_json(cycles)
        return
    show_table(
        ("cycle", "kind", "seed", "state", "phase", "seconds", "failure"),
        [(c.id, c.kind, c.seed, c.state.value, c.phase, f"{sum(c.seconds.values()):.0f}", c.failure) for c in cycles],
        empty="no cycle yet: `assay cycle start` starts one",
    )
