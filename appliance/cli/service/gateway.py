"""`assay gateway`: the endpoint for the owner's own agent, its tokens, and kept sessions."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated

import typer

from appliance.cli.shell.noted_signals import STOPS, noted
from appliance.cli.shell.options import Limit, api_client, read_settings
from appliance.cli.show.printing import (
    Output,
    for_people,
    in_data_folder,
    prints,
    records,
    short_time,
    show_fields,
    show_line,
)
from appliance.client.failures import ApiError
from appliance.text.printable import printable

if TYPE_CHECKING:
    from appliance.client.gateway import DeletedSessions, MadeToken, SessionDetail, SessionRow, TokenView

A_SESSION = "Id, as listed by `gateway sessions ls`, or its first digits (6 or more)."
MOST = 1000
"""Maximum sessions counted before all are deleted."""
app = typer.Typer(
    help="Run an OpenAI-compatible endpoint on this machine, for your own agent. See docs/gateway.md.",
    no_args_is_help=True,
)
token = typer.Typer(help="Manage access tokens, and consent to recording.", no_args_is_help=True)
sessions = typer.Typer(help="List, show and delete sessions recorded with consent.", no_args_is_help=True)
app.add_typer(token, name="token")
app.add_typer(sessions, name="sessions")


@app.command("serve")
@in_data_folder
def serve() -> None:
    """Serve the endpoint here, until Ctrl-C or SIGTERM. With gateway.enabled the daemon does this itself.

    Exit code 2: the port cannot be used; 5: the engine failed.
    """
    from functools import partial

    from appliance.audit.kept_heads import head_files
    from appliance.audit.logged_aliases import LoggedAliases
    from appliance.cli.check.target import target_for
    from appliance.cli.models.engine import configured_engine
    from appliance.errors import AssayError, ExitCode, UsageError
    from appliance.gateway.app import GatewayApi
    from appliance.gateway.champion import ServedChampion
    from appliance.gateway.keeping import SessionKeeper
    from appliance.gateway.server import GatewayDoor, GatewayServer, KnownTokens, loopback_socket
    from appliance.gateway.sessions import KeptSessions
    from appliance.inference.engine import ModelError
    from appliance.inference.engine_loop import EngineLoop
    from appliance.promotion.evidence import CHAMPION
    from appliance.system.clock import utc_now
    from appliance.text.redaction import Redaction

    settings = read_settings()
    asked, folder = settings.gateway, settings.data
    most = asked.max_tokens or settings.recipe.agent.max_tokens
    try:
        sock = loopback_socket(asked.address, asked.port)
        engine = configured_engine(settings, rows=asked.rows, slots=most)
    except ModelError as error:
        raise UsageError(str(error), error.hint) from error
    came = noted(*STOPS)
    in_log = LoggedAliases(folder, head_files(settings, folder))
    keeper = SessionKeeper(KeptSessions(folder), Redaction(asked.redact), asked.retention_days, utc_now)
    with (
        target_for(()).checker(jobs=2) as checker,
        EngineLoop(engine) as loop,
        ServedChampion(loop, folder, partial(in_log.alias, CHAMPION)) as champion,
    ):
        api = GatewayApi(loop, champion, most, checker, keeper, settings.recipe.training.temperature)
        with GatewayServer(GatewayDoor(api.app, KnownTokens(folder), asked.port), sock):
            show_line(f"serving the gateway at {asked.base_url}; stop with Ctrl-C")
            while not came:
                time.sleep(0.5)
                if loop.failure is not None and not came:
                    raise AssayError(f"the engine failed: {loop.failure}", "restart it", ExitCode.INFRASTRUCTURE)


@token.command("new")
@prints
def new(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the token.")],
    consent: Annotated[
        bool, typer.Option("--consent", help="Record its sessions; those with a verdict may become tasks.")
    ] = False,
) -> Output[MadeToken]:
    """Make a token. It is shown only once; only its hash is stored.

    Example: assay gateway token new editor --consent
    """
    from appliance.client.gateway import NewToken

    made = api_client().new_token(NewToken(name=name, consent=consent))
    recorded = "recorded, and may become tasks" if consent else "not recorded"
    typer.echo(f"shown only once; its sessions are {recorded}", err=True)
    tell_when_off()
    return Output(made, made.secret)


@token.command("ls")
@prints
def tokens_ls() -> Output[Sequence[TokenView]]:
    """List the tokens."""
    tokens = records(
        api_client().tokens(),
        ("name", "consent", "made", "revoked"),
        lambda one: (one.name, "yes" if one.consent else "no", one.created[:19], (one.revoked or "")[:19]),
        empty="no token: make one with `assay gateway token new NAME`",
    )
    tell_when_off()
    return tokens


@token.command("revoke")
@prints
def revoke(name: Annotated[str, typer.Argument(metavar="NAME")]) -> Output[TokenView]:
    """Revoke a token, effective from its next request.

    Example: assay gateway token revoke editor
    """
    revoked = api_client().revoke_token(name)
    return Output(revoked, f"the token {revoked.name} is revoked")


@sessions.command("ls")
@prints
def sessions_ls(limit: Limit = 50) -> Output[Sequence[SessionRow]]:
    """List the kept sessions, newest first."""
    from appliance.client.gateway import becomes_task

    return records(
        api_client().sessions(limit),
        ("session", "token", "newest turn", "turns", "tokens", "verdict", "becomes a task"),
        lambda one: (
            *(one.id, one.token, one.updated[:19], one.turns, one.tokens),
            *(one.verdict or "", becomes_task(one, "yes, before a night")),
        ),
        empty="no kept session: make a token with consent, `assay gateway token new NAME --consent`",
        narrow={"newest turn": short_time, "tokens": None, "turns": None},
    )


@sessions.command("show")
@prints
def sessions_show(name: Annotated[str, typer.Argument(metavar="SESSION", help=A_SESSION)]) -> Output[SessionDetail]:
    """Show everything kept of a session; --json includes its tokens.

    Example: assay gateway sessions show gs-1f0c52b7
    """
    found = api_client().session(name)
    return Output(found, lambda: _show_session(found))


def _show_session(found: SessionDetail) -> None:
    from appliance.client.gateway import becomes_task, would_train

    row, kept = found.row, found.session
    show_fields(
        [
            ("session", row.id),
            ("token", row.token),
            ("kept until", row.expires[:19]),
            ("weights", kept.version[:12]),
            ("tokens", f"{row.tokens}{', no word or token is kept (redaction)' if row.redacted else ''}"),
            ("verdict", f"{kept.verdict.outcome.value}: {kept.verdict.reason}" if kept.verdict else "none"),
            ("becomes a task", becomes_task(row, "yes, before a night")),
            ("would train", would_train(kept)),
        ]
    )
    for number, node in enumerate((node for node in kept.nodes if node.sampled), 1):
        count = f"{len(node.ids)} token{'' if len(node.ids) == 1 else 's'}"
        typer.echo(f"  turn {number}: {count}, {'no: ' + printable(node.why) if node.why else 'yes'}")
    for one in kept.said:
        typer.echo(f"\n{printable(one.role)}:")
        typer.echo(printable(one.text, lines=True))


@sessions.command("delete")
@prints
def sessions_delete(
    name: Annotated[str | None, typer.Argument(metavar="SESSION", help=A_SESSION)] = None,
    every: Annotated[bool, typer.Option("--all", help="Delete all sessions; asks first.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="With --all: do not ask.")] = False,
) -> Output[DeletedSessions]:
    """Delete everything kept of a session. A task made from it stays until you remove its taskset.

    Example: assay gateway sessions delete gs-1f0c52b7
    """
    from appliance.errors import UsageError

    if (name is None) is not every:
        raise UsageError("give either a session or --all", "list sessions with `assay gateway sessions ls`")
    if every and not yes:
        _be_sure()
    deleted = api_client().delete_session(name or "all")
    return Output(deleted, f"deleted: {deleted.deleted}")


def _be_sure() -> None:
    """Asks a person at a terminal to confirm deleting all kept sessions. Raises UsageError unless the person agrees."""
    from appliance.errors import UsageError

    if not for_people() or not sys.stdin.isatty():
        raise UsageError("cannot ask for confirmation without a terminal", "add --yes to delete all sessions")
    count = len(api_client().sessions(MOST))
    typer.echo(f"Delete {count}{' or more' if count == MOST else ''} sessions permanently? [y/N] ", nl=False, err=True)
    if input().strip().lower() not in ("y", "yes"):
        raise UsageError("nothing was deleted", "list sessions with `assay gateway sessions ls`")


def tell_when_off() -> None:
    """Warns that a token is useless while the gateway does not answer, if the daemon tells."""
    with suppress(ApiError):
        gateway = api_client().status().gateway
        if gateway is not None and not gateway.answers:
            typer.echo(f"the gateway: {gateway.summary}", err=True)
