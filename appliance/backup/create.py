"""Creates a backup of a data folder, even while a daemon works on it.

Invariants: the ledger is copied first, by SQLite and as of one moment, and the audit log is cut where that copy knows
it to end. Files are on disk before the ledger names them, so everything the copy names can be copied afterwards. A
model in service whose files do not match its manifest prevents the backup. Nothing is written in the data folder.
"""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
import stat
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

from appliance import __version__
from appliance.audit.log import log_file
from appliance.backup.store import (
    SESSIONS,
    BackupError,
    BackupManifest,
    BackupStore,
    KeptFile,
    NoBackupError,
    copy,
    digest_of,
    is_left_out,
)
from appliance.learning.errors import CheckpointError
from appliance.learning.folders import verify
from policies.audit import Head

LEDGER = "ledger.sqlite3"
PAGES = 2_048
"""Ledger pages per copy step; Ctrl-C takes effect between steps."""
SPARE_BYTES = 64 << 20
DAMAGED = "`assay audit verify` says what is wrong; a backup would have the same damage"
OF_MODELS = ("models", "cycles", "artifacts")
SECRETS = ("token", "tokens", "secret", "secrets")
Said = Callable[[str], None]


def create(data: Path, store: BackupStore, *, stamp: str, now: str, said: Said = lambda text: None) -> str:
    """Writes a backup of the data folder into the store and returns its name. Raises BackupError and OSError."""
    if not (data / LEDGER).is_file():
        raise NoBackupError(f"{data} is not a data folder: it has no {LEDGER}", hint="name another one with --data")
    if store.folder.resolve().is_relative_to(data.resolve()):
        raise NoBackupError(f"{store.folder} is in the data folder", hint="name a folder on another disk")
    with store.writing():
        _require_room(data, store)
        said("the ledger")
        digest, size = store.put(lambda target: copy_database(data / LEDGER, target))
        files = {LEDGER: KeptFile(bytes=size, sha256=digest, mode=0o600)}
        facts = LedgerFacts(store.object(digest))
        champion = facts.aliases.get("champion", "")
        for model, aliases in facts.models.items():
            said(f"checking the model that is {', '.join(aliases)}")
            _require_model(data, model, aliases[0])
        for path in _files(data):
            name = str(path.relative_to(data))
            said(name)
            try:
                files[name] = _kept(path, name, store, facts)
            except FileNotFoundError:
                continue  # a checkpoint of a cycle that has ended, or a draft: nothing on record names it
        if facts.line is not None and str(log_file(data).relative_to(data)) not in files:
            raise BackupError(f"{log_file(data)} is not there", hint=DAMAGED)
        manifest = BackupManifest(
            created=now,
            version=__version__,
            data=str(data),
            schema_revision=facts.revision,
            head=str(Head.of(facts.line)) if facts.line is not None else "",
            champion=champion,
            secrets=tuple(sorted(name for name in files if is_secret(name))),
            files=dict(sorted(files.items())),
        )
        return store.put_manifest(stamp, manifest)


def is_secret(name: str) -> bool:
    """True if the name of a file below a data folder suggests a key or token. Files of models and cycles do not count
    for `token` or `secret` in their name."""
    path = Path(name)
    if path.suffix in (".pem", ".key"):
        return True
    words = re.split(r"[^a-z0-9]+", path.name.lower())
    return path.parts[0] not in OF_MODELS and any(word.endswith(SECRETS) for word in words)


class LedgerFacts:
    """Schema revision, aliases and newest audit log line of a copied ledger. Raises BackupError for a damaged one."""

    def __init__(self, path: Path) -> None:
        try:
            with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True)) as sql:
                whole = str(sql.execute("PRAGMA quick_check(1)").fetchone()[0])
                self.revision = str(sql.execute("SELECT version_num FROM alembic_version").fetchone()[0])
                self.aliases = {
                    str(name): str(digest)
                    for name, digest in sql.execute("SELECT name, manifest FROM aliases")
                    if digest is not None
                }
                row = sql.execute("SELECT line FROM audit_head").fetchone()
        except (sqlite3.Error, TypeError) as error:
            raise BackupError(f"the ledger cannot be read: {error}", hint=DAMAGED) from error
        if whole != "ok":
            raise BackupError(f"the ledger is damaged: {whole}", hint=DAMAGED)
        self.models: dict[str, list[str]] = {}
        for name, digest in sorted(self.aliases.items()):
            self.models.setdefault(digest, []).append(name)
        self.line = str(row[0]).encode("ascii", "replace") if row else None


def copy_database(source: Path, target: Path) -> None:
    """Copies a SQLite file as of one moment, despite concurrent writers. Raises BackupError."""
    try:
        with (
            closing(sqlite3.connect(f"{source.absolute().as_uri()}?mode=ro", uri=True, timeout=30.0)) as read,
            closing(sqlite3.connect(target)) as made,
        ):
            read.isolation_level = None
            read.execute("BEGIN")  # one snapshot for all steps, despite other writers
            read.execute("SELECT count(*) FROM sqlite_schema").fetchone()
            read.backup(made, pages=PAGES, sleep=0)
    except sqlite3.Error as error:
        full = getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_FULL
        hint = "free some space on the disk of the backups" if full else "`assay doctor` checks the disk"
        raise BackupError(f"{source} cannot be copied: {error}", hint=hint) from error


def cut_log(content: bytes, line: bytes | None) -> bytes:
    """Returns the audit log up to the ledger's newest line, which is added if missing; later lines are dropped. Raises
    BackupError for another log."""
    if line is None:
        return b""
    number = Head.of(line).number
    lines = content.splitlines(keepends=True)
    torn = lines[number] if len(lines) > number else b""
    if len(lines) < number or not line.startswith(torn):
        raise BackupError("the audit log does not match the ledger", hint=DAMAGED)
    return b"".join([*lines[:number], line])


def _kept(path: Path, name: str, store: BackupStore, facts: LedgerFacts) -> KeptFile:
    mode = stat.S_IMODE(path.lstat().st_mode) & 0o777
    if name == "audit/log.jsonl":
        log = cut_log(path.read_bytes(), facts.line)
        digest, size = store.put(lambda target: _write(target, log))
    elif path.suffix == ".sqlite3":
        digest, size = store.put(lambda target: copy_database(path, target))
    else:
        digest, size = digest_of(path), path.stat().st_size
        if not store.has(digest, size):
            digest, size = store.put(lambda target: copy(path, target))
    return KeptFile(bytes=size, sha256=digest, mode=mode)


def _write(target: Path, content: bytes) -> None:
    target.write_bytes(content)


def _files(data: Path) -> Iterator[Path]:
    """Yields every regular file of a data folder to back up, but the ledger, in order. Drafts, SQLite's side files and
    gateway sessions are left out. Raises BackupError for a link, which a restored folder would lack."""
    for folder, folders, names in os.walk(data):
        at = Path(folder)
        folders[:] = sorted(one for one in folders if not is_left_out((at / one).relative_to(data)))
        for name in folders:
            _require_no_link(at / name)
        for name in sorted(names):
            path = at / name
            below = path.relative_to(data)
            if below.is_relative_to(SESSIONS) or is_left_out(below):
                continue
            _require_no_link(path)
            if str(below) != LEDGER and path.is_file():
                yield path


def _require_no_link(path: Path) -> None:
    if path.is_symlink():
        raise BackupError(
            f"{path} is a link, and its target would not be backed up",
            hint="put the file or folder itself there; use `mount --bind` for one on another disk",
        )


def _require_model(data: Path, model: str, alias: str) -> None:
    try:
        verify(data / "models" / model, expect=model)
    except CheckpointError as error:
        raise BackupError(
            f"the model that is {alias} is damaged: {error}", hint="`assay model rollback` first, or restore its files"
        ) from error


def _require_room(data: Path, store: BackupStore) -> None:
    """Raises BackupError if the backup store's disk does not even have room for the ledger. Other files may already be
    stored."""
    free = shutil.disk_usage(store.folder).free
    needed = (data / LEDGER).stat().st_size + SPARE_BYTES
    if free < needed:
        raise BackupError(
            f"{store.folder}: {free >> 20} MiB free, {needed >> 20} needed",
            hint="free some space there, or name a folder on another disk",
        )
