"""`assay sandbox run`, `snapshot` and `rm`: one call in a sandbox, and the fate of the sandbox afterwards.

Invariants: output is shown with visible control characters unless --raw was given. A sandbox ends with its command,
also on Ctrl-C. A snapshot is kept only after success.
"""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from appliance.cli.sandbox.options import Backend, Code, File, SandboxRun, copy_in, source_of
from appliance.cli.shell.broker_target import BrokerTarget, find, for_code, sessions
from appliance.cli.show.printing import Output, in_data_folder, prints
from appliance.errors import ExitCode
from appliance.text.printable import printable
from runtime.sandbox import CallResult, CallStatus, Limits, Priority, Sandbox, SnapshotId, Tier, Usage

if TYPE_CHECKING:
    from runtime.sessions import Sessions

CALLER = "assay sandbox"
ONE_CALL_SECONDS = 60.0
Pairs = Sequence[tuple[Path, str]]


class RunDocument(CallResult):
    """Result of the code that ran."""

    usage: Usage


class KeptRun(RunDocument):
    snapshot: str | None
    """Name of the snapshot; None if the run failed."""


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
    source = source_of(file, code)
    return run_once(for_code(backend), source, asked, tier, raw=raw)


def run_once(
    target: BrokerTarget, source: str, asked: SandboxRun, tier: str | None, *, raw: bool
) -> Output[RunDocument]:
    """Runs code in a sandbox once, and returns its output. Raises the runtime's errors if it could not be run."""
    files, limits, least = asked.pairs(), asked.limits(target, for_one(target)), tier_named(tier)
    if least is not Tier.SANDBOX and (asked.snapshot is not None or files):
        raise typer.BadParameter("files and snapshots need their own sandbox: omit --tier", param_hint="--tier")
    start = None if asked.snapshot is None else snapshot_named(asked.snapshot)
    with sessions(target.settings.model_copy(update={"limits": limits})) as pool:
        if least is Tier.SANDBOX:
            with sandbox(pool, limits, start, files) as box:
                result, usage = box.run(source), box.usage
        else:
            with pool.open(tier=least, caller=CALLER, priority=Priority.JOB) as session:
                result, usage = session.run(source), session.usage

    def show() -> None:
        show_output(result, raw=raw)
        complain_of(result)

    code = ExitCode.OK if result.status is CallStatus.OK else ExitCode.FAILED_VERDICT
    return Output(RunDocument(**dict(result), usage=usage), show, code)


def for_one(target: BrokerTarget) -> Limits:
    """Returns sandbox limits with more time per call, within the policy, since a person waits and can stop it. A first
    import of a large library on a busy machine must not time out."""
    known = target.settings.limits
    seconds = max(known.call_seconds, min(ONE_CALL_SECONDS, target.resources.max_call_seconds))
    return known.model_copy(update={"call_seconds": seconds})


@prints
def snapshot(asked: SandboxRun, file: File = None, code: Code = None, backend: Backend = None) -> Output[KeptRun]:
    """Run Python and keep the resulting sandbox; prints the snapshot's name, for --from.

    The code's output goes to standard error. Nothing is kept if it fails (exit code 1).

    Example: assay sandbox snapshot prepare.py
    """
    source = source_of(file, code)
    return run_and_keep(for_code(backend), source, asked)


def run_and_keep(target: BrokerTarget, source: str, asked: SandboxRun) -> Output[KeptRun]:
    """Runs code in a sandbox, and on success keeps a durable snapshot of it; returns the snapshot's name."""
    files, limits = asked.pairs(), asked.limits(target, for_one(target))
    start = None if asked.snapshot is None else snapshot_named(asked.snapshot)
    with (
        sessions(target.settings.model_copy(update={"limits": limits})) as pool,
        sandbox(pool, limits, start, files) as box,
    ):
        result = box.run(source)
        snapshot_id = box.snapshot(durable=True) if result.status is CallStatus.OK else None
        usage = box.usage

    def show() -> None:
        typer.echo(printable(result.output, lines=True), nl=False, err=True)
        complain_of(result)
        if snapshot_id is not None:
            typer.echo(snapshot_id)

    code = ExitCode.OK if snapshot_id is not None else ExitCode.FAILED_VERDICT
    return Output(KeptRun(**dict(result), usage=usage, snapshot=snapshot_id), show, code)


@in_data_folder
def rm(
    snapshots: Annotated[
        list[str], typer.Argument(metavar="SNAPSHOT...", help="Snapshot, as named by `ls` and `snapshot`.")
    ],
) -> None:
    """Remove kept snapshots.

    Example: assay sandbox rm 3f2a91
    """
    settings = find().settings
    names = [snapshot_named(name, "SNAPSHOT") for name in snapshots]
    with sessions(settings) as pool:
        for name in names:
            pool.forget(name)


@contextlib.contextmanager
def sandbox(pool: Sessions, limits: Limits, snapshot: SnapshotId | None, files: Pairs) -> Iterator[Sandbox]:
    """Opens a sandbox for the block, from a snapshot if one is given, and copies these files into it."""
    box = pool.sandbox(limits, snapshot=snapshot, caller=CALLER, priority=Priority.JOB)
    with contextlib.closing(box):
        for host, guest in files:
            copy_in(box, host, guest)
        yield box


def tier_named(name: str | None) -> Tier:
    try:
        return Tier(name or Tier.SANDBOX)
    except ValueError as error:
        raise typer.BadParameter(f"unknown tier {name!r}; use one of {', '.join(Tier)}", param_hint="--tier") from error


def snapshot_named(name: str, option: str = "--from") -> SnapshotId:
    if not re.fullmatch(r"[0-9a-f]{64}", name):
        raise typer.BadParameter(
            f"invalid snapshot {name!r}: give 64 hexadecimal digits, as listed by `assay sandbox ls`", param_hint=option
        )
    return SnapshotId(name)


def show_output(result: CallResult, *, raw: bool) -> None:
    if raw:
        sys.stdout.flush()
        sys.stdout.buffer.write(result.output.encode(errors="backslashreplace"))
        sys.stdout.buffer.flush()
    else:
        typer.echo(printable(result.output, lines=True), nl=False)


def complain_of(result: CallResult) -> None:
    """Reports a failed sandbox call on standard error: its traceback and status."""
    if result.status is CallStatus.OK:
        return
    if sys.stdout.isatty() and result.output and not result.output.endswith("\n"):
        typer.echo()
    for line in result.traceback.splitlines():
        typer.echo(f"  {printable(line)}", err=True)
    kind = "" if result.status is CallStatus.EXCEPTION else f"{result.status.value}: "
    typer.echo(f"{kind}{printable(result.error)}", err=True)
    if result.status is CallStatus.TIMEOUT:
        typer.echo("  give a call more time with --seconds S, up to the policy's max_call_seconds", err=True)
