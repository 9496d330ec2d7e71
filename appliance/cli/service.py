"""`assay serve`, `broker`, `status`, `tui`, `config`, `doctor` and `demo`: the appliance itself."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from appliance.cli.options import Data, Json, client_of, settings_of
from appliance.cli.person import KeyFile, Signs

if TYPE_CHECKING:
    from appliance.client import Status

config = typer.Typer(help="What is configured, and where it comes from.", no_args_is_help=True)


def add_to(root: typer.Typer) -> None:
    """Adds the commands of this module."""
    root.command("serve")(serve)
    root.command("broker")(broker)
    root.command("status")(status)
    root.command("tui")(tui)
    root.command("stop")(stop)
    root.command("doctor")(doctor)
    root.command("demo")(demo)
    root.add_typer(config, name="config")


def serve(context: typer.Context, data: Data = None) -> None:
    """Run the daemon in the foreground, until Ctrl-C or SIGTERM."""
    from appliance.daemon.serve import serve as run_daemon

    run_daemon(settings_of(context, data))


def broker(context: typer.Context, data: Data = None) -> None:
    """Run the broker alone, as root, for a daemon without root's rights (see docs/running.md)."""
    from appliance.cli.broker import run

    run(settings_of(context, data))


def status(context: typer.Context, data: Data = None, as_json: Json = False) -> None:
    """What is going on, in service, and waiting for a person."""
    from appliance.cli.show import show_json

    with client_of(context, data) as api:
        found = api.status()
    if as_json:
        show_json(found)
    else:
        _show_status(found)


def stop(context: typer.Context, data: Data = None) -> None:
    """Ask the daemon to stop. What is unfinished goes on with the next start."""
    from appliance.cli.show import show_line

    with client_of(context, data) as api:
        api.shutdown()
    show_line("the daemon is stopping")


def tui(context: typer.Context, name: Signs = None, key: KeyFile = None, data: Data = None) -> None:
    """Open the terminal program."""
    command = [sys.executable, "-m", "tui", "--socket", str(settings_of(context, data).socket_path)]
    command += ["--as", name] if name else []
    command += ["--key", str(key)] if key else []
    sys.stdout.flush()
    os.execv(sys.executable, command)  # noqa: S606


def doctor(
    context: typer.Context,
    no_selftest: Annotated[
        bool, typer.Option("--no-selftest", help="Do not have sandboxes prove what they hold; half a minute less.")
    ] = False,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Check this machine, and say what to do about what is missing."""
    from appliance.cli.doctor import run

    raise typer.Exit(run(settings_of(context, data), as_json, selftest=not no_selftest))


def demo(
    context: typer.Context,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Everything random follows from it.")] = 0,
    fresh: Annotated[bool, typer.Option("--fresh", help="Begin anew instead of going on.")] = False,
    json_file: Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Write the result there.")] = None,
    data: Data = None,
) -> None:
    """One night in miniature, here, in minutes. An unfinished one goes on."""
    if json_file is not None:
        _must_be_writable(json_file)
    from appliance.cli.demo import demo as run_demo

    # Whoever ends it politely is told the same as with Ctrl-C, and the terminal is put right.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        code = run_demo(settings_of(context, data), seed=seed, fresh=fresh, json_file=json_file)
    except KeyboardInterrupt:
        typer.echo("stopped; nothing is lost: the same command, without --fresh, goes on from here", err=True)
        raise typer.Exit(130) from None
    raise typer.Exit(code)


def _must_be_writable(file: Path) -> None:
    """Said before the minutes that the demonstration takes, and not after them."""
    if file.is_dir():
        raise typer.BadParameter(f"{file} is a folder", param_hint="--json")
    if not os.access(file.absolute().parent, os.W_OK):
        raise typer.BadParameter(f"{file.absolute().parent} is no folder that can be written", param_hint="--json")


@config.command("show")
def show(
    context: typer.Context,
    origin: Annotated[bool, typer.Option("--origin", help="Say where each value comes from.")] = False,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Every value in force; --json always says where each comes from."""
    settings = settings_of(context, data)
    typer.echo(settings.render_json() if as_json else settings.render(origins=origin))


def _show_status(found: Status) -> None:
    from appliance.cli.show import short, show_fields

    cycle, worker = found.cycle, found.worker
    waiting = sum(count for state, count in found.jobs.items() if state in ("queued", "running"))
    show_fields(
        [
            ("daemon", f"{found.version}, pid {found.pid}, up {found.uptime_seconds:.0f} s"),
            ("data", found.data),
            ("worker", f"{worker.state}" + (f": {worker.doing} (pid {worker.pid})" if worker.doing else "")),
            ("waits for", worker.waits_for),
            ("last failure", worker.last_failure),
            ("cycle", f"{cycle.id} {cycle.state.value}, {cycle.phase}" if cycle else "none yet"),
            ("failure", cycle.failure if cycle else ""),
            ("step", int(found.step_metrics["step"]) if "step" in found.step_metrics else None),
            ("champion", short(found.aliases["champion"])),
            ("canary", f"{short(found.canary.canary.candidate)} {found.canary.words}" if found.canary else ""),
            ("candidate", _candidate(found.aliases["candidate"])),
            ("previous", short(found.aliases["previous"])),
            ("decision", _decided(found)),
            ("jobs waiting", waiting),
            ("next cycle", found.next_cycle or "not scheduled"),
        ]
    )


def _candidate(digest: str | None) -> str:
    from appliance.cli.show import short

    return "-" if digest is None else f"{short(digest)}, waits for a word: `assay model show candidate`"


def _decided(found: Status) -> str:
    """In one line; `assay model show` has all of it."""
    from appliance.client.printable import printable

    decision = found.decision
    return "" if decision is None else printable(f"{decision.outcome.value}: {decision.reason}", limit=160)
