"""`assay audit`: reads, checks and exports the audit log. Nothing here needs the daemon."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from appliance.cli.shell.options import Data, Json, Limit, client_settings_of, data_of
from appliance.cli.show.printing import show_fields, show_json, show_line, show_records

if TYPE_CHECKING:
    from appliance.cli.documents.data import AuditHeadDocument
    from appliance.settings.client_config import ClientSettings
    from policies.audit import Head

app = typer.Typer(help="Read, check and export the audit log of all decisions.", no_args_is_help=True)


@app.command("ls")
def ls(context: typer.Context, limit: Limit = 20, data: Data = None, as_json: Json = False) -> None:
    """List the newest entries, newest first.

    Example: assay audit ls --limit 20
    """
    from appliance.cli.audit.read import entries_of

    show_records(
        entries_of(data_of(context, data), limit),
        ("number", "time", "event", "details"),
        lambda entry: (entry.number, entry.at[:19], entry.kind, _details(entry.what)),
        empty="the log is empty",
        as_json=as_json,
    )


@app.command("verify")
def verify(
    context: typer.Context,
    file: Annotated[Path | None, typer.Argument(help="A log or an export (default: the data folder's log).")] = None,
    key: Annotated[
        Path | None,
        typer.Option("--key", metavar="FILE", help="The daemon's public key (keys/daemon.pub), saved earlier."),
    ] = None,
    known: Annotated[
        list[str] | None,
        typer.Option("--known", metavar="NUMBER:SHA256", help="An entry that you noted elsewhere (repeatable)."),
    ] = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Find any changed, deleted, inserted, reordered or truncated entry and name the first bad one; also find ledger
    records that contradict the log (exit code 1).

    Example: assay audit verify audit.jsonl --key daemon.pub
    """
    from appliance.cli.audit.read import verified

    settings = client_settings_of(context, data)
    kept = _kept(settings) if file is None else ()
    checked = verified(settings.data, file, key, known or [], kept)
    found = checked.found
    if as_json:
        from appliance.cli.documents.data import AuditCheckDocument

        show_json(
            AuditCheckDocument(
                holds=checked.holds,
                entries=found.entries,
                head=str(found.head) if found.head else None,
                first_bad=found.bad,
                problem=found.problem,
                clock_back=found.back,
                key=checked.fingerprint,
                differs=tuple(checked.differs),
                kept=tuple(map(str, kept)),
                notes=tuple(checked.notes),
            )
        )
    else:
        if found.holds:
            show_line(f"all {found.entries} entries are valid")
        else:
            show_line(f"first bad entry: {found.bad}: {found.problem}")
        show_fields(
            [
                ("good entries", found.entries),
                ("head", found.head),
                *(("head kept in", place) for place in kept),
                ("signed by", checked.fingerprint),
            ]
        )
        if found.back is not None:
            show_line(f"the clock was set back before entry {found.back}")
        for text in checked.differs:
            show_line(f"the ledger contradicts the log: {text}")
        for note in checked.notes:
            show_line(f"note: {note}")
    raise typer.Exit(0 if checked.holds else 1)


@app.command("export")
def export(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(help="File to write; must not exist.")],
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Write the whole log with a signed end, to be checked elsewhere.

    Example: assay audit export audit.jsonl
    """
    from appliance.cli.audit.read import write_export

    settings = client_settings_of(context, data)
    head = write_export(settings.data, file, _kept(settings))
    if as_json:
        show_json(_head(head, file))
    else:
        show_line(f"{head.number + 1} entries, head {head}")


@app.command("renew")
def renew(
    context: typer.Context,
    reason: Annotated[str, typer.Option("--reason", help="Reason, recorded in the new log's first entry.")],
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Start a new log beside a damaged one, based on the ledger. All persons' keys become unknown. Stop the daemon
    first.

    Example: assay audit renew --reason "the disk was replaced"
    """
    from appliance.cli.audit.read import entries_of
    from appliance.cli.audit.renew import begin_anew

    settings = client_settings_of(context, data)
    old_log = begin_anew(settings.data, reason, _kept(settings))
    found = entries_of(settings.data, 1)[0].what["aliases"]
    aliases = found if isinstance(found, dict) else {}
    if as_json:
        from appliance.cli.documents.data import RenewedLog

        show_json(RenewedLog.model_validate({"old_log": str(old_log) if old_log else None, "aliases": aliases}))
        return
    show_line(f"started a new log; the old one is {old_log}" if old_log else "started a new log; there was none")
    for name, digest in aliases.items():
        show_line(f"taken from the ledger: {name} {digest or 'none'}")
    show_line("no person's key is known any more: admit yours again with `assay key admit` (trusted on first use)")


@app.command("accept")
def accept(context: typer.Context, data: Data = None, as_json: Json = False) -> None:
    """Accept the log as it is, after you moved the data folder or restored an old copy. Stop the daemon first."""
    from appliance.cli.audit.renew import accept as accept_log

    settings = client_settings_of(context, data)
    head = accept_log(settings.data, _kept(settings))
    if as_json:
        show_json(_head(head, *_kept(settings)))
    else:
        show_line(f"{head.number + 1} entries, head {head}: kept in {', '.join(map(str, _kept(settings)))}")


def _head(head: Head, *files: Path) -> AuditHeadDocument:
    from appliance.cli.documents.data import AuditHeadDocument

    return AuditHeadDocument(entries=head.number + 1, head=str(head), files=tuple(map(str, files)))


def _kept(settings: ClientSettings) -> tuple[Path, ...]:
    from appliance.audit.kept_heads import head_files

    return head_files(settings, settings.data)


def _details(what: Mapping[str, object]) -> str:
    short = {
        name: value
        for name, value in what.items()
        if name not in ("content", "envelope", "statement", "decision", "row", "rows", "record")
    }
    return json.dumps(short, ensure_ascii=True)
