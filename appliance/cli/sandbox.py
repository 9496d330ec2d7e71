"""`assay sandbox`: run code under the isolation that the product uses, and look at what runs there."""

from __future__ import annotations

from typing import Annotated

import typer

from appliance.cli import sandbox_options as given
from appliance.cli.options import Data, Json

app = typer.Typer(help="Run code in sandboxes, and look at them.", no_args_is_help=True)

Quick = Annotated[bool, typer.Option("--quick", help="The short form.")]


@app.command("run")
def run(
    context: typer.Context,
    file: given.File = None,
    code: given.Code = None,
    backend: given.Backend = None,
    tier: Annotated[
        str | None, typer.Option("--tier", help="shared, process or sandbox (default); never less than the code needs.")
    ] = None,
    snapshot: given.From = None,
    files: given.Files = None,
    seconds: given.Seconds = None,
    memory: given.Memory = None,
    others: given.Others = None,
    raw: Annotated[bool, typer.Option("--raw", help="Show what it printed as it is, control characters too.")] = False,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Run Python in a fresh sandbox: 0 when it ended well, 1 when it failed or went beyond a limit."""
    from appliance.cli.sandbox_place import for_code
    from appliance.cli.sandbox_run import run_once

    source, pairs = given.source_of(file, code), given.pairs_of(files)
    place = for_code(context, data, backend)
    limits = given.limits_with(place.settings.limits, seconds, memory, others)
    raise typer.Exit(
        run_once(place.settings, source, limits, tier=tier, snapshot=snapshot, files=pairs, raw=raw, as_json=as_json)
    )


@app.command("shell")
def shell(
    context: typer.Context,
    backend: given.Backend = None,
    snapshot: given.From = None,
    files: given.Files = None,
    seconds: given.Seconds = None,
    memory: given.Memory = None,
    others: given.Others = None,
    data: Data = None,
) -> None:
    """Python in a sandbox, line by line, with snapshots and branches; `:help` there."""
    from appliance.cli.sandbox_place import for_code
    from appliance.cli.sandbox_shell import converse

    pairs = given.pairs_of(files)
    place = for_code(context, data, backend)
    limits = given.limits_with(given.for_hours(place.settings.limits), seconds, memory, others)
    raise typer.Exit(converse(place.settings, limits, snapshot=snapshot, files=pairs))


@app.command("snapshot")
def snapshot(
    context: typer.Context,
    file: given.File = None,
    code: given.Code = None,
    backend: given.Backend = None,
    snapshot: given.From = None,
    files: given.Files = None,
    seconds: given.Seconds = None,
    memory: given.Memory = None,
    others: given.Others = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Run Python and keep the sandbox as it is then; prints the snapshot's name, for --from.

    What the code printed goes to standard error. Nothing is kept when it fails (1).
    """
    from appliance.cli.sandbox_place import for_code
    from appliance.cli.sandbox_run import keep

    source, pairs = given.source_of(file, code), given.pairs_of(files)
    place = for_code(context, data, backend)
    limits = given.limits_with(place.settings.limits, seconds, memory, others)
    raise typer.Exit(keep(place.settings, source, limits, snapshot=snapshot, files=pairs, as_json=as_json))


@app.command("rm")
def rm(
    context: typer.Context,
    snapshots: Annotated[list[str], typer.Argument(metavar="SNAPSHOT...", help="As `ls` and `snapshot` name them.")],
    data: Data = None,
) -> None:
    """Forget snapshots that were kept."""
    from appliance.cli.sandbox_place import find
    from appliance.cli.sandbox_run import forget

    forget(find(context, data).settings, snapshots)


@app.command("ls")
def ls(context: typer.Context, data: Data = None, as_json: Json = False) -> None:
    """The sandboxes and snapshots of the running broker."""
    from appliance.cli.sandbox_broker import show_listing
    from appliance.cli.sandbox_place import broker_path

    show_listing(broker_path(context, data), as_json=as_json)


@app.command("stats")
def stats(context: typer.Context, data: Data = None, as_json: Json = False) -> None:
    """What the running broker has counted since its start."""
    from appliance.cli.sandbox_broker import show_stats
    from appliance.cli.sandbox_place import broker_path

    show_stats(broker_path(context, data), as_json=as_json)


@app.command("sweep")
def sweep(context: typer.Context, data: Data = None, as_json: Json = False) -> None:
    """Have the running broker remove what dead owners left: processes, control groups, folders."""
    from appliance.cli.sandbox_broker import show_sweep
    from appliance.cli.sandbox_place import broker_path

    show_sweep(broker_path(context, data), as_json=as_json)


@app.command("selftest")
def selftest(
    context: typer.Context,
    backend: Annotated[
        str, typer.Option("--backend", help="gvisor, nsjail, or all that the policy gives anything to run.")
    ] = "all",
    quick: Quick = False,
    named: Annotated[
        str | None, typer.Option("--check", metavar="TEXT", help="Only the checks whose name has this in it.")
    ] = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """See for yourself that sandboxes hold here: every check that a backend has to pass. 1 when one fails."""
    from appliance.cli.sandbox_place import find
    from appliance.cli.sandbox_selftest import run_checks

    raise typer.Exit(run_checks(find(context, data, ready=1), backend, quick=quick, named=named, as_json=as_json))


@app.command("bench")
def bench(
    context: typer.Context,
    backend: given.Backend = None,
    quick: Quick = False,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """What calls, snapshots, rollbacks, branches and idle sandboxes cost here, in under a minute."""
    from appliance.cli.sandbox_bench import run_bench
    from appliance.cli.sandbox_place import find

    raise typer.Exit(run_bench(find(context, data, ready=8), backend, quick=quick, as_json=as_json))
