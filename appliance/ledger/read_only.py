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
from sqlalchemy.pool import NullPool

from appliance.ledger.database import explained
from appliance.ledger.ledger import LedgerError
from appliance.ledger.schema import NEWEST
from appliance.ledger.sqlite import SqliteLedger
from appliance.settings.data_schema import OLDEST, START_FRESH

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
