"""Opens the SQLite file with one writing and several reading connections, and explains every failure.

Invariants: a `writing` block is one transaction, on disk when the block ends (WAL, synchronous=FULL) and fully absent
if it raised. One thread writes at a time. Readers see what was committed before they began and never wait for the
writer. Readers do not checkpoint: SQLite before 3.51.3 can damage a WAL that two connections checkpoint concurrently.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, inspect
from sqlalchemy.pool import QueuePool, StaticPool

from appliance.ledger.ledger import LedgerError
from appliance.ledger.read_only import DAMAGED, explained
from appliance.ledger.schema import SCRIPTS, bring_up_to_date

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
