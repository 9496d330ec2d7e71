"""Opens a ledger read-only from outside the daemon.

Invariants: nothing is migrated, nothing locked; a ledger of another schema version is refused with a hint.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

from sqlalchemy import Connection, create_engine
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.pool import NullPool

from appliance.ledger.ledger import LedgerError
from appliance.ledger.schema import NEWEST
from appliance.ledger.sqlite import SqliteLedger
from appliance.settings.data_schema import OLDEST, START_FRESH
from appliance.system import durable_file

SECONDS = 5.0
"""Time that a read waits for a writer, in seconds."""


class ReadOnlyLedger(SqliteLedger):
    """Ledger opened read-only, as a context manager. Raises LedgerError if the file is missing or of another schema
    version."""

    def __init__(self, path: Path) -> None:
        if not path.exists():
            raise LedgerError(f"no such ledger: {path}", hint="name the data folder with --data, or start the daemon")
        self._database = _ReadOnlyDatabase(path)  # type: ignore[assignment]
        with self._database.reading() as connection:
            found = str(connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalar_one())
        if found != NEWEST:
            raise LedgerError(
                f"the ledger {path} has schema version {found}, and this program reads {NEWEST}",
                hint=START_FRESH
                if found < OLDEST
                else "start the daemon once: it migrates the ledger"
                if found < NEWEST
                else "use the newer version of Assay that wrote it",
            )


class _ReadOnlyDatabase:
    def __init__(self, path: Path) -> None:
        self.path = path

        def connect() -> sqlite3.Connection:
            return sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=SECONDS)

        self._engine = create_engine("sqlite://", creator=connect, poolclass=NullPool)

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        with explained(self.path), self._engine.connect() as connection:
            yield connection

    def writing(self) -> NoReturn:
        raise LedgerError(f"the ledger {self.path} is open read-only", hint="report this")

    def close(self) -> None:
        self._engine.dispose()


DAMAGED = "stop the daemon, keep the file for inspection, and put back a backup of it (and remove its -wal and -shm)"


class ReadOnlyError(LedgerError):
    """The ledger's file system is read-only; nothing of the record was written."""

    def __init__(self, path: Path) -> None:
        super().__init__(durable_file.read_only_message(path.parent), hint=durable_file.READ_ONLY_HINT)


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Converts SQLite and OS errors raised inside the block into LedgerError, with a hint; others pass."""
    try:
        yield
    except DBAPIError as error:
        raise _explain(path, error.orig if error.orig is not None else error) from error
    except SQLAlchemyError as error:
        raise LedgerError(f"the ledger {path} failed: {error}", hint="start the daemon again") from error
    except (sqlite3.Error, OSError) as error:
        raise _explain(path, error) from error


def _explain(path: Path, error: BaseException) -> LedgerError:
    if isinstance(error, OSError):
        reason = error.strerror or type(error).__name__
        return LedgerError(f"the ledger {path} cannot be used: {reason}", hint=f"make {path.parent} writable and retry")
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    # SQLite reports an I/O error for a file that was already open.
    if code in (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY) and durable_file.is_read_only(path):
        return ReadOnlyError(path)
    match code:
        case sqlite3.SQLITE_FULL:
            return LedgerError(
                f"the disk of {path} is full; nothing of this record was written",
                hint="free some space there and try again: what was recorded before is intact",
            )
        case sqlite3.SQLITE_IOERR:
            return LedgerError(
                f"the disk failed while the ledger {path} was used ({error}); nothing of this record was written",
                hint="check the disk (full, quota, broken?) and try again: what was recorded before is intact",
            )
        case sqlite3.SQLITE_NOTADB:
            return LedgerError(
                f"{path} is not a ledger: SQLite cannot read it",
                hint="move the file away if it is something else; if it was the ledger, put back a backup of it",
            )
        case sqlite3.SQLITE_CORRUPT:
            return LedgerError(f"the ledger {path} is damaged: {error}", hint=DAMAGED)
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return LedgerError(
                f"the ledger {path} is locked by another program",
                hint="close other programs that have it open (a SQLite browser, a backup) and try again",
            )
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_PERM:
            return LedgerError(
                f"the ledger {path} cannot be opened for writing: {error}",
                hint=f"{path.parent} must belong to the user that runs the daemon, on a disk mounted for writing",
            )
        case _:
            return LedgerError(f"the ledger {path} failed: {error}", hint=DAMAGED)
