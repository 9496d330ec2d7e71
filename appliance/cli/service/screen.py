"""`assay tui`: opens the terminal program, here or in a browser, on the daemon's data or on made-up nights."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from appliance.cli.shell.options import daemon_socket
from appliance.cli.show.printing import in_data_folder
from common.plugins.allowed import listed


@in_data_folder
def tui(
    name: Annotated[str | None, typer.Option("--as", metavar="NAME", help="Person whose key signs.")] = None,
    key: Annotated[Path | None, typer.Option("--key", metavar="FILE", help="File of the signing key.")] = None,
    read_only: Annotated[
        bool, typer.Option("--read-only", help="Disable approving, submitting and cancelling.")
    ] = False,
    screen: Annotated[str, typer.Option("--screen", metavar="NAME", help="Screen to open first.")] = "",
    light: Annotated[bool, typer.Option("--light", help="Use light colours; T toggles.")] = False,
    demo_data: Annotated[
        bool, typer.Option("--demo-data", help="Show made-up nights from a temporary folder; no daemon is needed.")
    ] = False,
    web: Annotated[
        bool, typer.Option("--web", help="Serve to a browser on this machine, protected by a token.")
    ] = False,
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="Port for --web; 0 takes a free one.")] = 0,
) -> None:
    """Open the terminal program.

    Number keys open its screens, ? lists every key.

    With --demo-data, made-up nights without a daemon; with --web, in a browser on this machine.

    Example: assay tui --read-only
    """
    options = [*(["--as", name] if name else []), *(["--read-only"] if read_only else [])]
    options += [*(["--screen", screen] if screen else []), *(["--light"] if light else [])]
    options += ["--web", "--port", str(port)] if web else []
    if not demo_data:
        options += ["--key", str(key.absolute())] if key else []
        command = _command(daemon_socket(), options)
        listed()  # the screens of admitted distributions
        sys.stdout.flush()
        os.execv(sys.executable, command)  # noqa: S606
    if not web and not (sys.stdin.isatty() and sys.stdout.isatty()):
        os.execv(sys.executable, _command(Path("nowhere"), options))  # noqa: S606 - it says what it needs
    from appliance.cli.demo.appliance import demo_appliance
    from appliance.cli.shell.noted_signals import left_by_signal, run_child

    with left_by_signal(needs_terminal=not web):
        typer.echo("preparing made-up nights, some seconds ...", err=True)
        with demo_appliance() as made:
            code = run_child(_command(made.socket, [*options, "--key", str(key or made.key)]))
    raise typer.Exit(code)


def _command(socket: Path, options: list[str]) -> list[str]:
    return [sys.executable, "-I", "-m", "tui", "--socket", str(socket), *options]
