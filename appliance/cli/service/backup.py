"""`assay backup`: copies of the data folder, made while the daemon runs. Nothing here needs the daemon."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from appliance.cli.shell.options import read_settings
from appliance.cli.show.printing import (
    Output,
    for_people,
    prints,
    prints_without_data,
    show_fields,
    show_lines,
    show_progress,
    show_table,
)
from appliance.system.durable_file import expanded
from appliance.text.printable import printable
from runtime.model import FrozenModel

if TYPE_CHECKING:
    from appliance.backup.store import BackupManifest, BackupStore

app = typer.Typer(help="Create, list, verify, restore and remove backups of the data folder.", no_args_is_help=True)
SHOWN_SECRETS = 10
Store = Annotated[Path, typer.Argument(metavar="FOLDER", help="Folder of the backups, if possible on another disk.")]
Name = Annotated[
    str | None, typer.Argument(metavar="NAME", help="Backup, as listed by `assay backup ls` (default: the newest).")
]


class BackupDocument(FrozenModel):
    """One backup, and what was done with it."""

    backup: str
    """Name of the backup."""
    format: str
    created: str
    version: str
    data: str
    schema_revision: str
    head: str
    champion: str
    secrets: tuple[str, ...]
    files: int
    bytes: int


class RestoredDocument(BackupDocument):
    restored: str
    """The data folder."""
    aside: str | None
    """Place of the previous data folder; None without one."""
    decided_since: int
    """Entries of the audit log that no longer count."""
    undone: tuple[str, ...]
    """Revocations, rejections, rollbacks and other governance acts among them."""
    tokens_revoked: tuple[str, ...]


class BackupsDocument(FrozenModel):
    backups: tuple[BackupDocument, ...]
    """Oldest first."""


class RemovedBackup(FrozenModel):
    backup: str
    freed_bytes: int


@app.command("create")
@prints
def create(folder: Store) -> Output[BackupDocument]:
    """Copy ledger, audit log, keys, models and files, also while the daemon works; unchanged files are not copied
    again.

    Example: assay backup create /mnt/backup
    """
    from appliance.backup.create import create as make
    from appliance.system.clock import file_stamp, utc_now

    store = _store(folder)
    name = make(read_settings().data, store, stamp=file_stamp(), now=utc_now(), said=show_progress)
    show_progress("")
    backup = _document(*store.manifest(name))
    return Output(backup, lambda: _show(backup, *_secrets(backup.secrets)))


@app.command("ls")
@prints_without_data
def ls(folder: Store) -> Output[BackupsDocument]:
    """List the backups in a folder, oldest first.

    Example: assay backup ls /mnt/backup
    """
    store = _store(folder)
    store.require()
    backups = tuple(_document(*store.manifest(name)) for name in store.names())
    headings = ("backup", "made", "version", "files", "MiB", "in service")
    rows = [
        (one.backup, one.created[:19], one.version, one.files, _mib(one.bytes), one.champion[:12] or "-")
        for one in backups
    ]
    return Output(BackupsDocument(backups=backups), lambda: show_table(headings, rows, empty="no backup"))


@app.command("verify")
@prints_without_data
def verify(folder: Store, name: Name = None) -> Output[BackupDocument]:
    """Compare every byte of a backup, and check its ledger and its audit log's chain.

    Example: assay backup verify /mnt/backup
    """
    from appliance.backup.restore import check

    store = _store(folder)
    name, manifest = store.manifest(name)
    check(store, manifest, said=show_progress)
    show_progress("")
    backup = _document(name, manifest)
    return Output(backup, lambda: _show(backup, "the backup is complete, and its audit log is valid"))


@app.command("restore")
@prints
def restore(
    folder: Store,
    name: Name = None,
    replace: Annotated[bool, typer.Option("--replace", help="Move an existing data folder aside.")] = False,
    accept_key: Annotated[
        str | None,
        typer.Option(
            "--accept-key", metavar="FINGERPRINT", help="Accept a backup of another history, signed by this key."
        ),
    ] = None,
    undo: Annotated[
        str | None,
        typer.Option(
            "--undo", metavar="DIGITS", help="Undo the newer revocations, rejections and other acts that were listed."
        ),
    ] = None,
) -> Output[RestoredDocument]:
    """Restore the data folder from a backup. Every byte is checked first; stop the daemon before.

    What people decided since the backup is listed, and undone only after you confirm it.
    Kept sessions are not restored, and the gateway's tokens are revoked: make new ones.

    Example: assay backup restore /mnt/backup
    """
    from appliance.audit.kept_heads import head_files
    from appliance.audit.log import AuditError
    from appliance.backup.restore import restore as put_back
    from appliance.backup.store import BackupError
    from appliance.backup.undone import require_confirmed
    from appliance.cli.audit.renew import accept_restored
    from appliance.daemon.processes.privileges import require_own_folder, user_account
    from appliance.system.clock import file_stamp

    settings = read_settings()
    store = _store(folder)
    name, manifest = store.manifest(name)
    if settings.service.user is not None and not settings.data.exists():
        require_own_folder(settings.data, user_account(settings.service.user))  # makes it, as that user's
    kept = head_files(settings, settings.data)

    revoked: list[str] = []

    def accept(made: Path) -> None:
        try:
            if manifest.head:
                revoked.extend(accept_restored(made, kept, name, manifest.created))
        except AuditError as error:
            raise BackupError(
                f"nothing was restored, because its log cannot be continued: {error}", hint=error.hint
            ) from error

    def confirm(acts: Sequence[str]) -> None:
        show_progress("")
        require_confirmed(acts, undo or _undo_typed(acts))

    aside, since, undone = put_back(
        store, manifest, settings.data, stamp=file_stamp(), replace=replace,
        kept=kept, accept_key=accept_key, confirm=confirm, accept=accept, said=show_progress,
    )  # fmt: skip
    show_progress("")
    more = {"restored": str(settings.data), "aside": str(aside) if aside else None}
    restored = RestoredDocument(
        **_facts(name, manifest), **more, decided_since=since, undone=undone, tokens_revoked=tuple(revoked)
    )
    lines = [f"restored {settings.data}" + (f"; the previous folder is {aside}" if aside else "")]
    if since:
        lines.append(f"newer entries of the audit log, no longer valid: {since}")
    lines += [f"undone: {act}" for act in undone]
    if revoked:
        lines.append(f"revoked gateway tokens, make new ones: {', '.join(revoked)}")
    if manifest.head:
        lines.append(f"the head of its audit log is kept in {', '.join(map(str, kept))}")
    lines.append("run `assay audit verify`, then start the daemon")
    return Output(restored, lambda: _show(restored, *lines))


def _undo_typed(acts: Sequence[str]) -> str | None:
    """Lists what a restore would undo, and returns what a person types to confirm it; None without a terminal."""
    from appliance.backup.undone import confirmation

    if not acts or not for_people() or not sys.stdin.isatty():
        return None
    for line in ("this restore would undo:", *acts):
        typer.echo(printable(line), err=True)
    typer.echo(f"Type {confirmation(acts)} to undo them: ", nl=False, err=True)
    return input().strip()


@app.command("rm")
@prints_without_data
def rm(
    folder: Store, name: Annotated[str, typer.Argument(metavar="NAME", help="Backup, as listed by `assay backup ls`.")]
) -> Output[RemovedBackup]:
    """Remove a backup, and files that no other backup needs.

    Example: assay backup rm /mnt/backup 20261124T020000
    """
    store = _store(folder)
    store.manifest(name)
    with store.writing():
        freed = store.remove(name)
    return Output(RemovedBackup(backup=name, freed_bytes=freed), f"removed {name}: {_mib(freed)} MiB")


def _secrets(names: Sequence[str]) -> list[str]:
    lines = ["it contains secret keys; protect it accordingly:"] * bool(names)
    lines += [f"  {name}" for name in names[:SHOWN_SECRETS]]
    if len(names) > SHOWN_SECRETS:
        lines.append(f"  and {len(names) - SHOWN_SECRETS} more (see --json)")
    return lines


def _store(folder: Path) -> BackupStore:
    from appliance.backup.store import BackupStore

    return BackupStore(expanded(folder).absolute())


def _mib(size: int) -> str:
    return f"{size / (1 << 20):.1f}"


def _facts(name: str, manifest: BackupManifest) -> dict[str, Any]:
    own = manifest.model_dump(mode="json", exclude={"files"})
    return {"backup": name, **own, "files": len(manifest.files), "bytes": manifest.size}


def _document(name: str, manifest: BackupManifest) -> BackupDocument:
    return BackupDocument(**_facts(name, manifest))


def _show(backup: BackupDocument, *lines: str) -> None:
    show_fields(
        [
            ("backup", backup.backup),
            ("made", backup.created[:19]),
            ("files", f"{backup.files}, {_mib(backup.bytes)} MiB"),
            ("audit log", f"to entry {backup.head.partition(':')[0]}" if backup.head else "empty"),
            ("in service", backup.champion[:12] or "no model"),
        ]
    )
    show_lines(lines)
