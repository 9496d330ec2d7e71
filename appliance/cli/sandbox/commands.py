"""`assay sandbox`: runs code under the product's isolation, and shows running sandboxes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from appliance.cli.sandbox.options import Backend, Code, File, SandboxRun, for_hours, source_of
from appliance.cli.show.printing import Output, in_data_folder, prints

if TYPE_CHECKING:
    from appliance.cli.sandbox.broker import FiguresDocument, SandboxesDocument, SweptDocument
    from appliance.cli.sandbox.run import KeptRun, RunDocument
    from appliance.cli.sandbox.selftest import BenchDocument, ConformanceDocument

app = typer.Typer(help="Run code in sandboxes, and inspect them.", no_args_is_help=True)

Quick = Annotated[bool, typer.Option("--quick", help="Run the short form.")]


@app.command("run")
@prints
def run(
    asked: SandboxRun,
    file: File = None,
    code: Code = None,
    backend: Backend = None,
    tier: Annotated[
        str | None, typer.Option("--tier", help="shared, process or sandbox (default); raised if the code needs more.")
    ] = None,
    raw: Annotated[bool, typer.Option("--raw", help="Print output unescaped, including control characters.")] = False,
) -> Output[RunDocument]:
    """Run Python in a fresh sandbox. Exit code 0 on success, 1 if it failed or exceeded a limit.

    Example: assay sandbox run -c 'print(2**64)'
    """
    from appliance.cli.sandbox.run import run_once
    from appliance.cli.shell.broker_target import for_code

    source = source_of(file, code)
    return run_once(for_code(backend), source, asked, tier, raw=raw)


@app.command("shell")
@in_data_folder
def shell(asked: SandboxRun, backend: Backend = None) -> None:
    """Use Python in a sandbox interactively, with snapshots and branches; type `:help` there.

    Example: assay sandbox shell --seconds 30 --memory 512
    """
    from appliance.cli.sandbox.shell import converse
    from appliance.cli.shell.broker_target import for_code

    pairs, target = asked.pairs(), for_code(backend)
    limits = asked.limits(target, for_hours(target.settings.limits, target.resources))
    converse(target.settings, limits, asked.snapshot, pairs)


@app.command("snapshot")
@prints
def snapshot(asked: SandboxRun, file: File = None, code: Code = None, backend: Backend = None) -> Output[KeptRun]:
    """Run Python and keep the resulting sandbox; prints the snapshot's name, for --from.

    The code's output goes to standard error. Nothing is kept if it fails (exit code 1).

    Example: assay sandbox snapshot prepare.py
    """
    from appliance.cli.sandbox.run import run_and_keep
    from appliance.cli.shell.broker_target import for_code

    source = source_of(file, code)
    return run_and_keep(for_code(backend), source, asked)


@app.command("rm")
@in_data_folder
def rm(
    snapshots: Annotated[
        list[str], typer.Argument(metavar="SNAPSHOT...", help="Snapshot, as named by `ls` and `snapshot`.")
    ],
) -> None:
    """Remove kept snapshots.

    Example: assay sandbox rm 3f2a91
    """
    from appliance.cli.sandbox.run import forget
    from appliance.cli.shell.broker_target import find

    forget(find().settings, snapshots)


@app.command("ls")
@prints
def ls() -> Output[SandboxesDocument]:
    """List the sandboxes and snapshots of the running broker."""
    from appliance.cli.sandbox.broker import listing
    from appliance.cli.shell.broker_target import broker_path

    return listing(broker_path())


@app.command("stats")
@prints
def stats() -> Output[FiguresDocument]:
    """Show the running broker's counters since its start."""
    from appliance.cli.sandbox.broker import figures
    from appliance.cli.shell.broker_target import broker_path

    return figures(broker_path())


@app.command("sweep")
@prints
def sweep() -> Output[SweptDocument]:
    """Make the running broker remove what dead owners left: processes, control groups, folders."""
    from appliance.cli.sandbox.broker import swept
    from appliance.cli.shell.broker_target import broker_path

    return swept(broker_path())


@app.command("selftest")
@prints
def selftest(
    backend: Annotated[str, typer.Option("--backend", help="gvisor, nsjail, or all that the policy uses.")] = "all",
    quick: Quick = False,
    named: Annotated[
        str | None, typer.Option("--check", metavar="TEXT", help="Only checks whose name contains this.")
    ] = None,
) -> Output[ConformanceDocument]:
    """Test that sandboxes hold here, with every check that a backend must pass. Exit code 1 if one fails.

    Example: assay sandbox selftest --quick
    """
    from appliance.cli.sandbox.selftest import run_checks
    from appliance.cli.shell.broker_target import find

    return run_checks(find(ready=1), backend, quick=quick, named=named)


@app.command("bench")
@prints
def bench(backend: Backend = None, quick: Quick = False) -> Output[BenchDocument]:
    """Measure calls, snapshots, rollbacks, branches and idle sandboxes here, in under a minute.

    Example: assay sandbox bench --quick
    """
    from appliance.cli.sandbox.selftest import run_bench
    from appliance.cli.shell.broker_target import find

    return run_bench(find(ready=8), backend, quick=quick)
