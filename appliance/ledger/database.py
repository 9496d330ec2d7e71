"""Opens the SQLite file with one writing and several reading connections, and explains every failure.

Invariants: a `writing` block is one transaction, on disk when the block ends (WAL, synchronous=FULL) and fully absent
if it raised. One thread writes at a time. Readers see what was committed before they began and never wait for the
writer. Readers do not checkpoint: SQLite before 3.51.3 can damage a WAL that two connections checkpoint concurrently.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, inspect
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.pool import QueuePool, StaticPool

from appliance.ledger.ledger import LedgerError
from appliance.ledger.schema import SCRIPTS, bring_up_to_date
from appliance.system import durable_file

READERS = 4
BUSY_MILLISECONDS = 5_000
WHOLE_BYTES = 1 << 30
"""Largest ledger that is read completely when opened (takes some seconds), in bytes."""


class Database:
    """An open ledger file, created if missing. Raises LedgerError for a file of another kind."""

    def __init__(self, path: Path, scripts: Path = SCRIPTS) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._closed = False
        self.fence: Callable[[Connection], None] = lambda connection: None
        """Called in each transaction before anything is written; what it raises refuses the transaction."""
        with explained(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        self._writer = _engine(
            path,
            ("synchronous=FULL", "foreign_keys=ON", f"journal_size_limit={64 << 20}"),
            "BEGIN IMMEDIATE",
            poolclass=StaticPool,
        )
        self._readers = _engine(
            path,
            ("query_only=ON", "wal_autocheckpoint=0"),
            "BEGIN",
            poolclass=QueuePool,
            pool_size=READERS,
            max_overflow=0,
        )
        try:
            with explained(path), self._writer.connect() as connection:
                bring_up_to_date(connection, path, scripts)
                _use_wal(connection, path)
                _require_whole(connection, path)
        except BaseException:
            self.close()
            raise

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        self._check_open()
        with explained(self.path), self._readers.connect() as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        with self._lock:
            self._check_open()
            with explained(self.path), self._writer.begin() as connection:
                self.fence(connection)
                yield connection

    def close(self) -> None:
        """Closes the database, its writing connection last: the one that closes last empties the WAL."""
        with self._lock:
            self._closed = True
            self._readers.dispose()
            self._writer.dispose()

    def _check_open(self) -> None:
        if self._closed:
            raise LedgerError(f"the ledger {self.path} is closed", hint="the daemon is stopping: start it again")


def _engine(path: Path, pragmas: Sequence[str], begin: str, **pool: Any) -> Engine:
    url = URL.create("sqlite", database=str(path))
    engine = create_engine(url, connect_args={"check_same_thread": False}, **pool)

    @event.listens_for(engine, "connect")
    def set_up(connection: Any, _record: object) -> None:
        connection.isolation_level = None
        for pragma in (f"busy_timeout={BUSY_MILLISECONDS}", *pragmas):
            connection.execute(f"PRAGMA {pragma}")

    # sqlite3 begins transactions late and never around DDL; an explicit BEGIN covers migrations too.
    @event.listens_for(engine, "begin")
    def begin_now(connection: Connection) -> None:
        connection.exec_driver_sql(begin)

    return engine


def _use_wal(connection: Connection, path: Path) -> None:
    connection.rollback()
    raw = connection.connection.driver_connection
    mode = raw.execute("PRAGMA journal_mode=WAL").fetchone()[0] if raw is not None else ""
    if mode != "wal":
        raise LedgerError(
            f"the file system of {path} cannot hold a ledger: no shared memory for SQLite's WAL",
            hint="put the data folder on a local disk (--data), not on a network share",
        )


def _require_whole(connection: Connection, path: Path) -> None:
    """Reads every page of the ledger file, so that damage shows now and not during a night. Raises LedgerError.

    Rollouts are skipped in a ledger larger than `WHOLE_BYTES`; damage there shows when they are read.
    """
    checked = [""]
    if path.stat().st_size > WHOLE_BYTES:
        checked = [f"('{name}')" for name in inspect(connection).get_table_names() if name != "rollouts"]
    for table in checked:
        found = connection.exec_driver_sql(f"PRAGMA quick_check{table or '(1)'}").scalar()
        if found != "ok":
            raise LedgerError(f"the ledger {path} is damaged: {found}", hint=DAMAGED)
    connection.rollback()


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
