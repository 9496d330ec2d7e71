"""Finds the revision of the schema that a file has, and brings it to the newest.

What always holds: a migration is one transaction, so a file has the old schema or the new one; before an existing file
is migrated a copy lies beside it, named by its revision and the date; a file of a newer version, or of another program,
is left exactly as it is.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

from sqlalchemy import Connection, inspect

from appliance.clock import file_stamp
from appliance.ledger.ledger import LedgerError

SCRIPTS = Path(__file__).parent / "migrations"
NEWEST = "0006"
"""Head of the packaged migrations; a test holds it to that. Alembic is only loaded when a file has another one."""
APPLICATION_ID = 0x41535359
"""Stands in the file's header, so that another program's database is never taken for a ledger."""


def bring_up_to_date(connection: Connection, path: Path, scripts: Path = SCRIPTS) -> None:
    """Creates the schema in an empty file, migrates an older one after a backup, refuses a newer or foreign one."""
    found = _revision(connection, path)
    connection.rollback()
    if scripts == SCRIPTS and found == NEWEST:
        return
    _migrate(connection, path, scripts, found)


def _revision(connection: Connection, path: Path) -> str | None:
    """Returns None for an empty file. Raises LedgerError for a database that is not a ledger."""
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
    if found is not None and found not in known:
        raise LedgerError(
            f"the ledger {path} was written by a newer version of Assay (schema {found}, this one knows {known[0]})",
            hint="use the newer version, or put back the backup that it made before its first start",
        )
    if found == known[0]:
        return
    backup = None if found is None else _back_up(connection, path, found)
    try:
        connection.exec_driver_sql(f"PRAGMA application_id={APPLICATION_ID}")
        command.upgrade(config, "head")
        connection.commit()
    except BaseException as error:
        connection.rollback()
        if backup is None or not isinstance(error, Exception):
            raise
        raise LedgerError(
            f"the ledger {path} could not be migrated from schema {found}: {error}",
            hint=f"it is unchanged, and a copy is at {backup}; use the version that wrote it, and report this",
        ) from error


def _back_up(connection: Connection, path: Path, found: str) -> Path:
    """Makes a complete copy beside the file, as of now, on disk when this returns."""
    backup = path.with_name(f"{path.name}.before-migration-from-{found}-{file_stamp()}")
    partial = backup.with_name(f"{backup.name}.partial")
    partial.unlink(missing_ok=True)
    raw = connection.connection.driver_connection
    if not isinstance(raw, sqlite3.Connection):
        raise TypeError(f"no SQLite connection: {type(raw).__name__}")
    with closing(sqlite3.connect(partial)) as copy:
        raw.backup(copy)
    partial.chmod(0o600)
    for name in (partial, partial.parent):
        descriptor = os.open(name, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    partial.replace(backup)
    return backup
