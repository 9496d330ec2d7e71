"""`assay sandbox`: runs code under the product's isolation, and shows running sandboxes."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from appliance.cli.sandbox.options import Backend, Code, File, SandboxRun, for_hours, source_of
from appliance.cli.shell.model_options import parameters_of, read_options, with_options
from appliance.cli.shell.options import Data, Json

app = typer.Typer(help="Run code in sandboxes, and inspect them.", no_args_is_help=True)

Quick = Annotated[bool, typer.Option("--quick", help="Run the short form.")]


@app.command("run")
@with_options(parameters_of(SandboxRun))
def run(
    context: typer.Context,
    file: File = None,
    code: Code = None,
    backend: Backend = None,
    tier: Annotated[
        str | None, typer.Option("--tier", help="shared, process or sandbox (default); raised if the code needs more.")
    ] = None,
    raw: Annotated[bool, typer.Option("--raw", help="Print output unescaped, including control characters.")] = False,
    data: Data = None,
    as_json: Json = False,
    **values: Any,
) -> None:
    """Run Python in a fresh sandbox. Exit code 0 on success, 1 if it failed or exceeded a limit.

    Example: assay sandbox run -c 'print(2**64)'
    """
    from appliance.cli.sandbox.run import run_once
    from appliance.cli.shell.broker_target import for_code

    source, asked = source_of(file, code), read_options(SandboxRun, values)
    raise typer.Exit(run_once(for_code(context, data, backend), source, asked, tier, raw=raw, as_json=as_json))


@app.command("shell")
@with_options(parameters_of(SandboxRun))
def shell(context: typer.Context, backend: Backend = None, data: Data = None, **values: Any) -> None:
    """Use Python in a sandbox interactively, with snapshots and branches; type `:help` there.

    Example: assay sandbox shell --seconds 30 --memory 512
    """
    from appliance.cli.sandbox.shell import converse
    from appliance.cli.shell.broker_target import for_code

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
    """Run Python and keep the resulting sandbox; prints the snapshot's name, for --from.

    The code's output goes to standard error. Nothing is kept if it fails (exit code 1).

    Example: assay sandbox snapshot prepare.py
    """
    from appliance.cli.sandbox.run import run_and_keep
    from appliance.cli.shell.broker_target import for_code

    source, asked = source_of(file, code), read_options(SandboxRun, values)
    raise typer.Exit(run_and_keep(for_code(context, data, backend), source, asked, as_json=as_json))


@app.command("rm")
def rm(
    context: typer.Context,
    snapshots: Annotated[
        list[str], typer.Argument(metavar="SNAPSHOT...", help="Snapshot, as named by `ls` and `snapshot`.")
    ],
    data: Data = None,
) -> None:
    """Remove kept snapshots.

    Example: assay sandbox rm 3f2a91
    """
    from appliance.cli.sandbox.run import forget
    from appliance.cli.shell.broker_target import find

    forget(find(context, data).settings, snapshots)


@app.command("ls")
def ls(context: typer.Context, data: Data = None, as_json: Json = False) -> None:
    """List the sandboxes and snapshots of the running broker."""
    from appliance.cli.sandbox.broker import show_listing
    from appliance.cli.shell.broker_target import broker_path

    show_listing(broker_path(context, data), as_json=as_json)


@app.command("stats")
def stats(context: typer.Context, data: Data = None, as_json: Json = False) -> None:
    """Show the running broker's counters since its start."""
    from appliance.cli.sandbox.broker import show_stats
    from appliance.cli.shell.broker_target import broker_path

    show_stats(broker_path(context, data), as_json=as_json)


@app.command("sweep")
def sweep(context: typer.Context, data: Data = None, as_json: Json = False) -> None:
    """Make the running broker remove what dead owners left: processes, control groups, folders."""
    from appliance.cli.sandbox.broker import show_sweep
    from appliance.cli.shell.broker_target import broker_path

    show_sweep(broker_path(context, data), as_json=as_json)


@app.command("selftest")
def selftest(
    context: typer.Context,
    backend: Annotated[str, typer.Option("--backend", help="gvisor, nsjail, or all that the policy uses.")] = "all",
    quick: Quick = False,
    named: Annotated[
        str | None, typer.Option("--check", metavar="TEXT", help="Only checks whose name contains this.")
    ] = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Test that sandboxes hold here, with every check that a backend must pass. Exit code 1 if one fails.

    Example: assay sandbox selftest --quick
    """
    from appliance.cli.sandbox.selftest import run_checks
    from appliance.cli.shell.broker_target import find

    raise typer.Exit(run_checks(find(context, data, ready=1), backend, quick=quick, named=named, as_json=as_json))


@app.command("bench")
def bench(
    context: typer.Context, backend: Backend = None, quick: Quick = False, data: Data = None, as_json: Json = False
) -> None:
    """Measure calls, snapshots, rollbacks, branches and idle sandboxes here, in under a minute.

    Example: assay sandbox bench --quick
    """
    from appliance.cli.sandbox.selftest import run_bench
    from appliance.cli.shell.broker_target import find

    raise typer.Exit(run_bench(find(context, data, ready=8), backend, quick=quick, as_json=as_json))
