"""`assay serve`, `broker`, `status`, `stop`, `doctor` and `demo`: the appliance itself."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from appliance.cli.shell.options import MOST_SEED, api_client, read_settings
from appliance.cli.show.printing import (
    Output,
    age_text,
    cycle_state,
    in_data_folder,
    prints,
    short,
    show_fields,
    show_line,
)
from common.counting import counted

if TYPE_CHECKING:
    from appliance.cli.machine.doctor import DoctorDocument
    from appliance.client import Status
    from appliance.client.status import WorkerStatus


@in_data_folder
def serve(
    paused: Annotated[
        bool, typer.Option("--paused", help="Start with nights paused, until `assay schedule resume`.")
    ] = False,
) -> None:
    """Run the daemon in the foreground, until Ctrl-C or SIGTERM.

    Example: assay serve --paused
    """
    from appliance.daemon.api.serve import serve as run_daemon

    run_daemon(read_settings(), paused=paused)


@in_data_folder
def broker() -> None:
    """Run the broker alone, as root.

    For a daemon without root's rights (see docs/operate.md).
    """
    from appliance.config.places import broker_folder, broker_settings, broker_socket
    from appliance.daemon.processes.broker_process import command
    from appliance.daemon.processes.privileges import user_account
    from appliance.daemon.processes.startup import make_broker_folder
    from appliance.settings.policy_files import load_policy

    # Whoever may use it is `service.user`, and root. What it is told is handed over in a pipe, which takes these some
    # hundred bytes at once, before this process becomes the broker.
    settings = read_settings()
    uid = user_account(settings.service.user).pw_uid
    make_broker_folder(broker_folder(settings, settings.data), for_others=uid != os.geteuid())
    content = (
        broker_settings(settings, settings.data, load_policy(settings.data, outside=False)).model_dump_json().encode()
    )
    reading, writing = os.pipe()
    os.write(writing, content)
    os.close(writing)
    os.dup2(reading, 0)
    os.close(reading)
    program = [*command(broker_socket(settings, settings.data), uid), "--log", settings.log.format]
    os.execv(program[0], program)  # noqa: S606 - a list, and no shell


@prints
def status() -> Output[Status]:
    """Show running work, models in service, and what waits for a person.

    Example: assay status --json
    """
    found = api_client().status()
    return Output(found, lambda: _show_status(found))


@in_data_folder
def stop() -> None:
    """Ask the daemon to stop. Unfinished work continues at the next start."""
    api_client().shutdown()
    show_line("the daemon is stopping")


@prints
def doctor(
    no_selftest: Annotated[
        bool, typer.Option("--no-selftest", help="Skip the sandbox self-test; half a minute less.")
    ] = False,
) -> Output[DoctorDocument]:
    """Check this machine, and advise on missing parts.

    Example: assay doctor --no-selftest
    """
    from appliance.cli.machine.doctor import run

    return run(read_settings(), selftest=not no_selftest)


@in_data_folder
def demo(
    seed: Annotated[int, typer.Option("--seed", min=0, max=MOST_SEED, help="Seed of all random choices.")] = 0,
    fresh: Annotated[bool, typer.Option("--fresh", help="Start again instead of continuing.")] = False,
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write the result to this file.")
    ] = None,
    model: Annotated[
        str,
        typer.Option("--model", metavar="NAME", help="A pretrained model: a registered base, or a source to import."),
    ] = "",
) -> None:
    """Run one night in miniature on this machine, in minutes. An unfinished one continues.

    With --model a pretrained model learns its tool from examples first, and then from verdicts. Its data folder is
    beside the default one, unless --data names another.

    Example: assay demo --model smollm2
    """
    if json_file is not None:
        _must_be_writable(json_file)
    from appliance.cli.demo.command import demo as run_demo

    # Whoever ends it politely sees the same as with Ctrl-C, and the terminal is put right.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        code = run_demo(read_settings(), seed=seed, fresh=fresh, json_file=json_file, model=model)
    except KeyboardInterrupt:
        typer.echo("stopped; nothing is lost: the same command, without --fresh, continues from here", err=True)
        raise typer.Exit(130) from None
    raise typer.Exit(code)


def _must_be_writable(file: Path) -> None:
    """Raises BadParameter if the demonstration's result file cannot be written: before its minutes, not after them."""
    if file.is_dir():
        raise typer.BadParameter(f"{file} is a folder", param_hint="--json")
    if not os.access(file.absolute().parent, os.W_OK):
        raise typer.BadParameter(f"{file.absolute().parent}: no such writable folder", param_hint="--json")


def _show_status(found: Status) -> None:
    from appliance.records.cycles import CycleState

    cycle, worker = found.cycle, found.worker
    aside = found.jobs.get("set_aside", 0)
    waiting = sum(count for state, count in found.jobs.items() if state in ("queued", "running"))
    show_fields(
        [
            ("daemon", f"{found.version}, pid {found.pid}, up {age_text(found.uptime_seconds)}"),
            ("data", found.data),
            ("tampered with", found.tampered),
            ("worker", f"{worker.state}" + _doing(worker)),
            ("solvers", f"{found.solvers.state} (pid {found.solvers.pid})" if found.solvers.pid else None),
            ("set aside", f"{counted(aside, 'job')}: see `assay jobs ls`, then `assay jobs resume`" if aside else None),
            ("sandboxes", found.broker_news),
            ("blocked by", worker.waits_for),
            ("cycles wait for", found.cycles_wait_for),
            ("last failure", worker.last_failure),
            ("cycle", cycle_state(cycle) if cycle else "none yet"),
            ("nights", found.nights),
            ("failure", cycle.failure if cycle and cycle.state is not CycleState.CANCELLED else ""),
            ("step", int(found.step_metrics["step"]) + 1 if "step" in found.step_metrics else None),
            ("champion", short(found.aliases["champion"])),
            ("canary", f"{short(found.canary.canary.candidate)} {found.canary.summary}" if found.canary else ""),
            ("candidate", ", ".join(filter(None, (short(found.aliases["candidate"]), found.candidate_waits_for)))),
            ("previous", short(found.aliases["previous"])),
            ("decision", _decided(found)),
            ("jobs waiting", waiting),
            ("gateway", found.gateway.summary if found.gateway is not None else ""),
            ("next cycle", found.next_cycle or "not scheduled; see `assay schedule show`"),
        ]
    )


def _doing(worker: WorkerStatus) -> str:
    return f": {worker.doing} (pid {worker.pid})" if worker.doing and worker.pid else ""


def _decided(found: Status) -> str:
    """Formats the newest decision about a candidate as one line; `assay model show` has the rest."""
    from appliance.text.printable import printable

    decision = found.decision
    return "" if decision is None else printable(f"{decision.outcome.value}: {decision.reason}", limit=160)
