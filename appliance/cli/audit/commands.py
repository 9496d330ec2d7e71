"""`assay audit`: reads, checks and exports the audit log. Nothing here needs the daemon."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from appliance.cli.shell.options import Limit, data_folder, read_client_settings
from appliance.cli.show.printing import Output, prints, records, short, show_fields, show_line
from common.counting import counted
from runtime.model import FrozenModel

if TYPE_CHECKING:
    from appliance.settings.client_config import ClientSettings
    from policies.audit import AuditEntry, Head

app = typer.Typer(help="Read, check and export the audit log of all decisions.", no_args_is_help=True)


_DIGEST = re.compile("[0-9a-f]{64}")


class AuditCheckDocument(FrozenModel):
    holds: bool
    entries: int
    head: str | None
    first_bad: int | None
    problem: str
    clock_back: int | None
    """The entry before which the clock was set back."""
    key: str
    differs: tuple[str, ...]
    kept: tuple[str, ...]
    """Places outside the data folder that keep the newest head."""
    notes: tuple[str, ...]


class AuditHeadDocument(FrozenModel):
    entries: int
    head: str
    files: tuple[str, ...]
    """Written files: the export, or the copies of the head."""


class RenewedLog(FrozenModel):
    old_log: str | None
    aliases: dict[str, str | None]
    """Aliases that the new log takes over from the ledger."""


@app.command("ls")
@prints
def ls(limit: Limit = 20) -> Output[Sequence[AuditEntry]]:
    """List the newest entries, newest first.

    Example: assay audit ls --limit 20
    """
    from appliance.cli.audit.read import entries_of

    return records(
        entries_of(data_folder(), limit),
        ("number", "time", "event", "details"),
        lambda entry: (entry.number, entry.at[:19], entry.kind, _details(entry.what)),
        empty="the log is empty",
    )


@app.command("verify")
@prints
def verify(
    file: Annotated[Path | None, typer.Argument(help="A log or an export (default: the data folder's log).")] = None,
    key: Annotated[
        Path | None,
        typer.Option("--key", metavar="FILE", help="The daemon's public key (keys/daemon.pub), saved earlier."),
    ] = None,
    known: Annotated[
        list[str] | None,
        typer.Option("--known", metavar="NUMBER:SHA256", help="An entry that you noted elsewhere (repeatable)."),
    ] = None,
) -> Output[AuditCheckDocument]:
    """Find any changed, deleted, inserted, reordered or truncated entry and name the first bad one; also find ledger
    records that contradict the log (exit code 1).

    Example: assay audit verify audit.jsonl --key daemon.pub
    """
    from appliance.cli.audit.read import verified

    settings = read_client_settings()
    kept = _kept(settings) if file is None else ()
    checked = verified(settings.data, file, key, known or [], kept)
    found = checked.found
    document = AuditCheckDocument(
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
    return Output(document, lambda: _show(document, found.holds), 0 if checked.holds else 1)


def _show(found: AuditCheckDocument, log_holds: bool) -> None:
    if log_holds:
        show_line("the only entry is valid" if found.entries == 1 else f"all {found.entries} entries are valid")
    else:
        show_line(f"first bad entry: {found.first_bad}: {found.problem}")
    show_fields(
        [
            ("good entries", found.entries),
            ("head", found.head),
            *(("head kept in", place) for place in found.kept),
            ("signed by", found.key),
        ]
    )
    if found.clock_back is not None:
        show_line(f"the clock was set back before entry {found.clock_back}")
    for text in found.differs:
        show_line(f"the ledger contradicts the log: {text}")
    for note in found.notes:
        show_line(f"note: {note}")


@app.command("export")
@prints
def export(file: Annotated[Path, typer.Argument(help="File to write; must not exist.")]) -> Output[AuditHeadDocument]:
    """Write the whole log with a signed end, to be checked elsewhere.

    Example: assay audit export audit.jsonl
    """
    from appliance.cli.audit.read import write_export

    settings = read_client_settings()
    head = write_export(settings.data, file, _kept(settings))
    return Output(_head(head, file), f"{counted(head.number + 1, 'entry')}, head {head}")


@app.command("renew")
@prints
def renew(
    reason: Annotated[str, typer.Option("--reason", help="Reason, recorded in the new log's first entry.")],
) -> Output[RenewedLog]:
    """Start a new log beside a damaged one, based on the ledger. All persons' keys become unknown. Stop the daemon
    first.

    Example: assay audit renew --reason "the disk was replaced"
    """
    from appliance.cli.audit.read import entries_of
    from appliance.cli.audit.renew import begin_anew

    settings = read_client_settings()
    old_log = begin_anew(settings.data, reason, _kept(settings))
    found = entries_of(settings.data, 1)[0].what["aliases"]
    aliases = found if isinstance(found, dict) else {}
    lines = [
        f"started a new log; the old one is {old_log}" if old_log else "started a new log; there was none",
        *(f"taken from the ledger: {name} {digest or 'none'}" for name, digest in aliases.items()),
        "no person's key is known any more: admit yours again with `assay key admit` (trusted on first use)",
    ]
    renewed = RenewedLog.model_validate({"old_log": str(old_log) if old_log else None, "aliases": aliases})
    return Output(renewed, lines)


@app.command("accept")
@prints
def accept(
    forget: Annotated[
        int, typer.Option("--forget", metavar="NUMBER", help="Number of newest entries that the log lacks.")
    ] = 0,
) -> Output[AuditHeadDocument]:
    """Accept the log as it is, after you moved the data folder or restored an old copy. Stop the daemon first.

    Entries that are missing at its end may be revocations or rejections: their number must be given.

    Example: assay audit accept --forget 2
    """
    from appliance.cli.audit.renew import accept as accept_log

    settings = read_client_settings()
    kept = _kept(settings)
    head = accept_log(settings.data, kept, forget)
    return Output(
        _head(head, *kept), f"{counted(head.number + 1, 'entry')}, head {head}: kept in {', '.join(map(str, kept))}"
    )


def _head(head: Head, *files: Path) -> AuditHeadDocument:
    return AuditHeadDocument(entries=head.number + 1, head=str(head), files=tuple(map(str, files)))


def _kept(settings: ClientSettings) -> tuple[Path, ...]:
    from appliance.audit.kept_heads import head_files

    return head_files(settings, settings.data)


def _details(what: Mapping[str, object]) -> str:
    long = ("content", "envelope", "statement", "decision", "row", "rows", "record")
    return ", ".join(f"{name} {_value(value)}" for name, value in what.items() if name not in long and value != "")


def _value(value: object) -> str:
    if isinstance(value, str):
        return short(value) if _DIGEST.fullmatch(value) else value
    return "-" if value is None else json.dumps(value, ensure_ascii=True)
