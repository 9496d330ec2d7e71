"""Finds the schema revision of a ledger file and migrates it to the newest.

Invariants: a migration is one transaction, so a file has the old schema or the new one; before an existing file is
migrated, a copy named by revision and date is put beside it; a file of a newer version or another program is left
untouched. However often it is retried, one copy of the same bytes remains, none after a failed migration, and never a
partial one.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

from sqlalchemy import Connection, inspect
from sqlalchemy.exc import DBAPIError

from appliance.ledger.ledger import LedgerError
from appliance.settings.data_schema import START_FRESH, ledger_fault
from appliance.system.clock import file_stamp

SCRIPTS = Path(__file__).parent / "migrations"
NEWEST = "1000"
"""Head of the packaged migrations (a test checks this). Alembic is loaded only if a file has another revision."""
APPLICATION_ID = 0x41535359
"""SQLite application id in the file header, which tells a ledger from another program's database."""
SPARE_BYTES = 16 << 20
"""Free bytes required beyond the copy and what a migration rewrites, at most the ledger's size."""


def bring_up_to_date(connection: Connection, path: Path, scripts: Path = SCRIPTS) -> None:
    """Creates the ledger's schema in an empty file, migrates an older one after a backup, refuses any other."""
    found = _revision(connection, path)
    connection.rollback()
    if scripts == SCRIPTS and found == NEWEST:
        return
    _migrate(connection, path, scripts, found)


def _revision(connection: Connection, path: Path) -> str | None:
    """Returns the schema revision of a ledger file, None for an empty one. Raises LedgerError for another database."""
    application = connection.exec_driver_sql("PRAGMA application_id").scalar_one()
    tables = inspect(connection).get_table_names()
    if application == 0 and not tables:
        return None
    if application != APPLICATION_ID or "alembic_version" not in tables:
        raise LedgerError(
            f"{path} is a database of another program", hint="move it away, or choose another data folder with --data"
        )
    return str(connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalar_one())


def _migrate(connection: Connection, path: Path, scripts: Path, found: str | None) -> None:
    from alembic import command
    from alembic.config import Config
    from alembic.script import ScriptDirectory

    config = Config()
    config.set_main_option("script_location", str(scripts).replace("%", "%%"))
    config.attributes["connection"] = connection
    known = [script.revision for script in ScriptDirectory.from_config(config).walk_revisions()]
    if found is not None and (fault := ledger_fault(found)):
        raise LedgerError(f"the ledger {path} was {fault}", hint=START_FRESH)
    if found is not None and found not in known:
        raise LedgerError(
            f"the ledger {path} was written by a newer version of Assay (schema {found}, this one knows {known[0]})",
            hint="use the newer version, or restore a backup from before it: `assay backup restore FOLDER --replace`",
        )
    if found == known[0]:
        return
    backup = None if found is None else _back_up(connection, path, found, known[0])
    try:
        connection.exec_driver_sql(f"PRAGMA application_id={APPLICATION_ID}")
        command.upgrade(config, "head")
        connection.commit()
    except BaseException as error:
        connection.rollback()
        if backup is None or not isinstance(error, Exception):
            raise
        if _revision(connection, path) == found:  # unchanged, so the copy is redundant
            connection.rollback()
            backup.unlink()
        if isinstance(error, DBAPIError) and getattr(error.orig, "sqlite_errorcode", 0) & 0xFF in _OF_THE_DISK:
            raise
        reason = error.orig if isinstance(error, DBAPIError) else error
        raise LedgerError(
            f"the ledger {path} could not be migrated from schema {found}: {reason}",
            hint="it is unchanged; use the version that wrote it, and report this",
        ) from error


_OF_THE_DISK = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY)


def _back_up(connection: Connection, path: Path, found: str, newest: str) -> Path:
    """Copies the whole ledger beside its file, syncs the copy to disk and returns its path. Raises LedgerError without
    room for it."""
    every = f"{path.name}.before-migration-from-{found}-"
    backup = path.with_name(f"{every}{file_stamp()}")
    partial = backup.with_name(f"{backup.name}.partial")
    _remove_partial(path)
    _require_room(path, found, newest)
    raw = connection.connection.driver_connection
    if not isinstance(raw, sqlite3.Connection):
        raise TypeError(f"no SQLite connection: {type(raw).__name__}")
    try:
        with closing(sqlite3.connect(partial)) as copy:
            raw.backup(copy)
        partial.chmod(0o600)
        _sync(partial)
    except BaseException:
        _remove_partial(path)
        raise
    for earlier in path.parent.glob(f"{every}*"):  # from a killed start
        if earlier != partial and _same(earlier, partial):
            earlier.unlink()
    partial.replace(backup)
    _sync(path.parent)
    return backup


def _require_room(path: Path, found: str, newest: str) -> None:
    there = sum(one.stat().st_size for one in (path, path.with_name(f"{path.name}-wal")) if one.exists())
    free, needed = shutil.disk_usage(path.parent).free, 2 * there + SPARE_BYTES
    if free < needed:
        raise LedgerError(
            f"the migration of {path} from schema {found} to {newest} needs {needed >> 20} MiB, and {free >> 20} are "
            "free",
            hint="free some space and start again; the ledger is unchanged, and the version that wrote it can use it",
        )


def _remove_partial(path: Path) -> None:
    """Removes unfinished copies of a ledger, including SQLite's files beside them."""
    for left in path.parent.glob(f"{path.name}.before-migration-from-*.partial*"):
        left.unlink(missing_ok=True)


def _same(one: Path, other: Path) -> bool:
    if one.stat().st_size != other.stat().st_size:
        return False
    digests = []
    for path in (one, other):
        with path.open("rb") as file:
            digests.append(hashlib.file_digest(file, "sha256").digest())
    return digests[0] == digests[1]


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
