"""Translates SQLite failures into LedgerErrors with a hint."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from appliance.ledger.ledger import LedgerError
from appliance.system import read_only_disk

DAMAGED = "stop the daemon, keep the file for inspection, and put back a backup of it (and remove its -wal and -shm)"


class ReadOnlyError(LedgerError):
    """The ledger's file system is read-only; nothing of the record was written."""

    def __init__(self, path: Path) -> None:
        super().__init__(read_only_disk.said(path.parent), hint=read_only_disk.HINT)


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
    if code in (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY) and read_only_disk.is_read_only(path):
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
