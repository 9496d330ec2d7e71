"""Is `assay sandbox`: run code under the isolation that the product uses, and look at what runs there."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from appliance.cli.model_options import parameters_of, read_options, with_options
from appliance.cli.options import Data, Json
from appliance.cli.sandbox_options import Backend, Code, File, SandboxRun, for_hours, source_of

app = typer.Typer(help="Run code in sandboxes, and look at them.", no_args_is_help=True)

Quick = Annotated[bool, typer.Option("--quick", help="The short form.")]


@app.command("run")
@with_options(parameters_of(SandboxRun))
def run(
    context: typer.Context,
    file: File = None,
    code: Code = None,
    backend: Backend = None,
    tier: Annotated[
        str | None, typer.Option("--tier", help="shared, process or sandbox (default); never less than the code needs.")
    ] = None,
    raw: Annotated[bool, typer.Option("--raw", help="Show what it printed as it is, control characters too.")] = False,
    data: Data = None,
    as_json: Json = False,
    **values: Any,
) -> None:
    """Run Python in a fresh sandbox: 0 when it ended well, 1 when it failed or went beyond a limit.

    Example: assay sandbox run -c 'print(2**64)'
    """
    from appliance.cli.broker_target import for_code
    from appliance.cli.sandbox_run import run_once

    source, asked = source_of(file, code), read_options(SandboxRun, values)
    raise typer.Exit(run_once(for_code(context, data, backend), source, asked, tier, raw=raw, as_json=as_json))


@app.command("shell")
@with_options(parameters_of(SandboxRun))
def shell(context: typer.Context, backend: Backend = None, data: Data = None, **values: Any) -> None:
    """Python in a sandbox, line by line, with snapshots and branches; `:help` there.

    Example: assay sandbox shell --seconds 30 --memory 512
    """
    from appliance.cli.broker_target import for_code
    from appliance.cli.sandbox_shell import converse

    asked = read_options(SandboxRun, values)
    pairs, target = asked.pairs(), for_code(context, data, backend)
    limits = asked.limits(target, for_hours(target.settings.limits, target.resources))
    raise typer.Exit(converse(target.settings, limits, asked.snapshot, pairs))


@app.command("snapshot")
@with_options(parameters_of(SandboxRun))
def snapshot(
    context: typer.Context,
    file: File = None,
    code: Code = None,
    backend: Backend = None,
    data: Data = None,
    as_json: Json = False,
    **values: Any,
) -> None:
    """Run Python and keep the sandbox as it is then; prints the snapshot's name, for --from.

    What the code printed goes to standard error. Nothing is kept when it fails (1).

    Example: assay sandbox snapshot prepare.py
    """
    from appliance.cli.broker_target import for_code
    from appliance.cli.sandbox_run import run_and_keep

    source, asked = source_of(file, code), read_options(SandboxRun, values)
    raise typer.Exit(run_and_keep(for_code(context, data, backend), source, asked, as_json=as_json))


@app.command("rm")
def rm(
    context: typer.Context,
    snapshots: Annotated[list[str], typer.Argument(metavar="SNAPSHOT...", help="As `ls` and `snapshot` name them.")],
    data: Data = None,
) -> None:
    """Forget snapshots that were kept.

    Example: assay sandbox rm 3f2a91
    """
    from appliance.cli.broker_target import find
    from appliance.cli.sandbox_run import forget

    forget(find(context, data).settings, snapshots)


@app.command("ls")
def ls(context: typer.Context, data: Data = None, as_json: Json = False) -> None:
    """The sandboxes and snapshots of the running broker."""
    from appliance.cli.broker_target import broker_path
    from appliance.cli.sandbox_broker import show_listing

    show_listing(broker_path(context, data), as_json=as_json)


@app.command("stats")
def stats(context: typer.Context, data: Data = None, as_json: Json = False) -> None:
    """What the running broker has counted since its start."""
    from appliance.cli.broker_target import broker_path
    from appliance.cli.sandbox_broker import show_stats

    show_stats(broker_path(context, data), as_json=as_json)


@app.command("sweep")
def sweep(context: typer.Context, data: Data = None, as_json: Json = False) -> None:
    """Have the running broker remove what dead owners left: processes, control groups, folders."""
    from appliance.cli.broker_target import broker_path
    from appliance.cli.sandbox_broker import show_sweep

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
    """See for yourself that sandboxes hold here: every check that a backend has to pass. 1 when one fails.

    Example: assay sandbox selftest --quick
    """
    from appliance.cli.broker_target import find
    from appliance.cli.sandbox_selftest import run_checks

    raise typer.Exit(run_checks(find(context, data, ready=1), backend, quick=quick, named=named, as_json=as_json))


@app.command("bench")
def bench(
    context: typer.Context, backend: Backend = None, quick: Quick = False, data: Data = None, as_json: Json = False
) -> None:
    """What calls, snapshots, rollbacks, branches and idle sandboxes cost here, in under a minute.

    Example: assay sandbox bench --quick
    """
    from appliance.cli.broker_target import find
    from appliance.cli.sandbox_selftest import run_bench

    raise typer.Exit(run_bench(find(context, data, ready=8), backend, quick=quick, as_json=as_json))
