"""`assay backup`: copies of the data folder, made while the daemon runs. Nothing here needs the daemon."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from appliance.cli.shell.options import Data, Json, settings_of
from appliance.cli.show.printing import show_fields, show_json, show_line, show_progress, show_table
from appliance.system.durable_file import expanded

if TYPE_CHECKING:
    from appliance.backup.store import BackupManifest, BackupStore

app = typer.Typer(help="Create, list, verify, restore and remove backups of the data folder.", no_args_is_help=True)
SHOWN_SECRETS = 10
Store = Annotated[Path, typer.Argument(metavar="FOLDER", help="Folder of the backups, if possible on another disk.")]
Name = Annotated[
    str | None, typer.Argument(metavar="NAME", help="Backup, as listed by `assay backup ls` (default: the newest).")
]


@app.command("create")
def create(context: typer.Context, folder: Store, data: Data = None, as_json: Json = False) -> None:
    """Copy ledger, audit log, keys, models and files, also while the daemon works; unchanged files are not copied
    again.

    Example: assay backup create /mnt/backup
    """
    from appliance.backup.create import create as make
    from appliance.system.clock import file_stamp, utc_now

    store = _store(folder)
    name = make(settings_of(context, data).data, store, stamp=file_stamp(), now=utc_now(), said=show_progress)
    show_progress("")
    _, manifest = store.manifest(name)
    _show(name, manifest, as_json)
    if not as_json:
        _show_secrets(manifest.secrets)


@app.command("ls")
def ls(folder: Store, as_json: Json = False) -> None:
    """List the backups in a folder, oldest first.

    Example: assay backup ls /mnt/backup
    """
    store = _store(folder)
    store.require()
    found = [store.manifest(name) for name in store.names()]
    if as_json:
        from appliance.cli.documents.data import BackupDocument, BackupsDocument

        documents = (BackupDocument.model_validate(_facts(name, manifest)) for name, manifest in found)
        show_json(BackupsDocument(backups=tuple(documents)))
        return
    show_table(
        ("backup", "made", "version", "files", "MiB", "in service"),
        [
            (name, one.created[:19], one.version, len(one.files), _mib(one.size), one.champion[:12] or "-")
            for name, one in found
        ],
        empty="no backup",
    )


@app.command("verify")
def verify(folder: Store, name: Name = None, as_json: Json = False) -> None:
    """Compare every byte of a backup, and check its ledger and its audit log's chain.

    Example: assay backup verify /mnt/backup
    """
    from appliance.backup.restore import check

    store = _store(folder)
    name, manifest = store.manifest(name)
    check(store, manifest, said=show_progress)
    show_progress("")
    _show(name, manifest, as_json)
    if not as_json:
        show_line("the backup is complete, and its audit log is valid")


@app.command("restore")
def restore(
    context: typer.Context,
    folder: Store,
    name: Name = None,
    replace: Annotated[bool, typer.Option("--replace", help="Move an existing data folder aside.")] = False,
    accept_key: Annotated[
        str | None,
        typer.Option(
            "--accept-key", metavar="FINGERPRINT", help="Accept a backup of another history, signed by this key."
        ),
    ] = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Restore the data folder from a backup. Every byte is checked first; stop the daemon before.

    Kept sessions are not restored, and the gateway's tokens are revoked: make new ones.

    Example: assay backup restore /mnt/backup
    """
    from appliance.audit.kept_heads import head_files
    from appliance.audit.log import AuditError
    from appliance.backup.restore import restore as put_back
    from appliance.backup.store import BackupError
    from appliance.cli.audit.renew import accept_restored
    from appliance.daemon.processes.privileges import require_own_folder, user_account
    from appliance.system.clock import file_stamp

    settings = settings_of(context, data)
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

    aside, since = put_back(
        store, manifest, settings.data, stamp=file_stamp(), replace=replace,
        kept=kept, accept_key=accept_key, accept=accept, said=show_progress,
    )  # fmt: skip
    show_progress("")
    facts = {"restored": str(settings.data), "aside": str(aside) if aside else None}
    _show(name, manifest, as_json, **facts, decided_since=since, tokens_revoked=revoked)
    if not as_json:
        show_line(f"restored {settings.data}" + (f"; the previous folder is {aside}" if aside else ""))
        if since:
            show_line(f"newer entries of the audit log, no longer valid: {since}")
        if revoked:
            show_line(f"revoked gateway tokens, make new ones: {', '.join(revoked)}")
        if manifest.head:
            show_line(f"the head of its audit log is kept in {', '.join(map(str, kept))}")
        show_line("run `assay audit verify`, then start the daemon")


@app.command("rm")
def rm(
    folder: Store,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Backup, as listed by `assay backup ls`.")],
    as_json: Json = False,
) -> None:
    """Remove a backup, and files that no other backup needs.

    Example: assay backup rm /mnt/backup 20261124T020000
    """
    store = _store(folder)
    store.manifest(name)
    with store.writing():
        freed = store.remove(name)
    if as_json:
        from appliance.cli.documents.data import RemovedBackup

        show_json(RemovedBackup(backup=name, freed_bytes=freed))
    else:
        show_line(f"removed {name}: {_mib(freed)} MiB")


def _show_secrets(names: Sequence[str]) -> None:
    if names:
        show_line("it contains secret keys; protect it accordingly:")
    for name in names[:SHOWN_SECRETS]:
        show_line(f"  {name}")
    if len(names) > SHOWN_SECRETS:
        show_line(f"  and {len(names) - SHOWN_SECRETS} more (see --json)")


def _store(folder: Path) -> BackupStore:
    from appliance.backup.store import BackupStore

    return BackupStore(expanded(folder).absolute())


def _mib(size: int) -> str:
    return f"{size / (1 << 20):.1f}"


def _facts(name: str, manifest: BackupManifest, **more: object) -> dict[str, object]:
    return {"backup": name, **manifest.model_dump(mode="json", exclude={"files"}), "files": len(manifest.files),
            "bytes": manifest.size, **more}  # fmt: skip


def _show(name: str, manifest: BackupManifest, as_json: bool, **more: object) -> None:
    if as_json:
        from appliance.cli.documents.data import BackupDocument, RestoredDocument

        shape = RestoredDocument if more else BackupDocument
        show_json(shape.model_validate(_facts(name, manifest, **more)))
        return
    show_fields(
        [
            ("backup", name),
            ("made", manifest.created[:19]),
            ("files", f"{len(manifest.files)}, {_mib(manifest.size)} MiB"),
            ("audit log", f"to entry {manifest.head.partition(':')[0]}" if manifest.head else "empty"),
            ("in service", manifest.champion[:12] or "no model"),
        ]
    )
