"""The command `assay`: what a person types becomes one call of the control API or of the module that does it.

What always holds: an error that was foreseen is a message and a hint on standard error and a documented exit code,
never a traceback; what a model wrote cannot steer the terminal; nothing heavy is imported before a command needs it.
"""

from __future__ import annotations

import os
import select
import sys
import traceback
from typing import Annotated

import typer

from appliance.cli import audit, bundle, check, cluster, cycles, jobs, keys, models, policy, sandbox, service
from appliance.cli.options import Data

NO_READER = 141
"""What a shell says of a program that a broken pipe has ended."""

app = typer.Typer(
    name="assay",
    help="Keeps an agent honest and makes it better every night.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    rich_markup_mode=None,
)


def _version(wanted: bool) -> None:
    if wanted:
        from appliance import __version__

        typer.echo(f"assay {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    context: typer.Context,
    data: Data = None,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    context.obj = data


service.add_to(app)
jobs.add_to(app)
bundle.add_to(app)
app.add_typer(models.app, name="model")
app.add_typer(keys.app, name="key")
app.add_typer(audit.app, name="audit")
app.add_typer(policy.app, name="policy")
app.add_typer(cycles.app, name="cycle")
app.add_typer(check.app, name="check")
app.add_typer(sandbox.app, name="sandbox")
app.add_typer(cluster.app, name="cluster")


def main() -> None:
    """Runs the command line and exits."""
    command = typer.main.get_command(app)
    try:
        command(prog_name="assay")
    except KeyboardInterrupt:
        sys.exit(130)
    except SystemExit as left:
        # The parser of the command line makes 1 of a broken pipe, which is the code of a verdict.
        broken = left.__context__
        if not isinstance(broken, BrokenPipeError):
            raise
        sys.exit(NO_READER if _nobody_reads() else complain(broken))
    except Exception as error:  # noqa: BLE001 - the outermost frame: said to the person, never swallowed
        sys.exit(complain(error))


def _nobody_reads() -> bool:
    """Whether whoever read the output (head, less) has seen enough."""
    watch = select.poll()
    watch.register(1, 0)
    return any(event & (select.POLLERR | select.POLLHUP) for _, event in watch.poll(0))


def complain(error: Exception) -> int:
    """Prints what happened and what to do on standard error; returns the exit code.

    The traceback of an error that nobody foresaw is shown with ASSAY_LOG__LEVEL=debug.
    """
    from appliance.client.printable import printable
    from appliance.errors import explain

    if os.environ.get("ASSAY_LOG__LEVEL") == "debug":
        traceback.print_exception(error)
    explained = explain(error)
    typer.echo(f"assay: {printable(explained.message, lines=True)}", err=True)
    if explained.hint:
        typer.echo(f"  {printable(explained.hint, lines=True)}", err=True)
    return int(explained.code)


if __name__ == "__main__":
    main()
