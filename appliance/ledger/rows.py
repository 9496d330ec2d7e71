"""Stores records as SQLite rows, written once or updated, and reads them back."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import PydanticSerializationError
from sqlalchemy import Connection, Executable, Select, Table, insert, select, update

from appliance.ledger.database import Database
from appliance.ledger.ledger import LedgerError

R = TypeVar("R", bound=BaseModel)


class Rows:
    """Reads and writes records as ledger rows: a record's JSON is authoritative; each call is one transaction."""

    _database: Database

    def _put_once(self, table: Table, key: str, record: BaseModel, **columns: str) -> None:
        payload = payload_of(record)
        with self._database.writing() as connection:
            stored = stored_in(connection, table, key)
            if stored is None:
                connection.execute(insert(table), {"key": key, "payload": payload, **columns})
            elif stored != payload and self._read(type(record), stored) != record:
                raise differs(table, key)

    def _put(self, table: Table, key: str, record: BaseModel) -> None:
        with self._database.writing() as connection:
            put_row(connection, table, {"key": key, "payload": payload_of(record)})

    def _one(self, shape: type[R], table: Table, key: str) -> R | None:
        found = self._records(shape, select(table.c.payload).where(table.c.key == key))
        return found[0] if found else None

    def _keys(self, table: Table, prefix: str, limit: int) -> list[str]:
        """Returns up to `limit` record keys that begin with `prefix`, by an index range, for any characters."""
        query = select(table.c.key).where(table.c.key >= prefix, table.c.key < f"{prefix}{chr(sys.maxunicode)}")
        return [row.key for row in self._rows(query.order_by(table.c.key).limit(limit))]

    def _begins(self, get: Callable[[str], R | None], table: Table, name: str, prefix: str, what: str) -> R | None:
        """Returns the record of that name, or the only one whose name begins with a non-empty `prefix`.

        Raises AmbiguousPrefixError if several do.
        """
        exact = get(name)
        if exact is not None or not prefix:
            return exact
        found = only_one(what, prefix, self._keys(table, prefix, MOST_LISTED + 1))
        return None if found is None else get(found)

    def _newest(self, shape: type[R], table: Table, limit: int | None, **columns: str | None) -> list[R]:
        query = select(table.c.payload)
        for name, value in columns.items():
            if value is not None:
                query = query.where(table.c[name] == value)
        return self._records(shape, query.order_by(table.c.sequence.desc()).limit(limit))

    def _records(self, shape: type[R], query: Select[Any]) -> list[R]:
        return [self._read(shape, row.payload) for row in self._rows(query)]

    def _rows(self, query: Executable) -> Sequence[Any]:
        with self._database.reading() as connection:
            return connection.execute(query).all()

    def _read(self, shape: type[R], payload: str) -> R:
        try:
            return shape.model_validate_json(payload)
        except ValidationError as error:
            raise LedgerError(
                f"a {shape.__name__} in {self._database.path} cannot be read: {error.errors()[0]['msg']}",
                hint="another program changed the file; restore a backup",
            ) from error


def payload_of(record: BaseModel) -> str:
    """Returns a record's JSON for the ledger. Raises LedgerError for a record that could not be read back."""
    try:
        payload = record.model_dump_json()
        type(record).model_validate_json(payload)
    except (PydanticSerializationError, ValidationError) as error:
        raise LedgerError(
            f"this {type(record).__name__} cannot be stored: JSON cannot represent it ({error})",
            hint="a number in it is not finite, or a text is not Unicode: correct the code that made it",
        ) from error
    return payload


def changed_in(stored: str, **fields: object) -> str:
    """Returns a record's text with these fields replaced. The rest stays as written: the log has its
    digest."""
    return json.dumps({**json.loads(stored), **fields}, ensure_ascii=False, separators=(",", ":"))


def stored_in(connection: Connection, table: Table, key: str) -> str | None:
    payload: str | None = connection.execute(select(table.c.payload).where(table.c.key == key)).scalar()
    return payload


def put_row(connection: Connection, table: Table, row: Mapping[str, str]) -> None:
    """Inserts a record's row into a ledger table, or updates it in place: the order of arrival stays."""
    changed = connection.execute(update(table).where(table.c.key == row["key"]), dict(row))
    if changed.rowcount == 0:
        connection.execute(insert(table), dict(row))


def differs(table: Table, key: str) -> LedgerError:
    return LedgerError(
        f"the ledger has a different record {key[:20]} in {table.name}, and never overwrites one",
        hint="give the new record another id",
    )


LEAST = 6
PREFIX = re.compile(rf"[0-9a-f]{{{LEAST},64}}")
CYCLE_PREFIX = re.compile(rf"[a-z]+-\d{{{LEAST}}}[0-9a-z-]{{0,64}}")
"""Kind of a cycle and the first digits of its start time: `night-202611`."""
ROLLOUT_PREFIX = re.compile(rf"[a-z]+-(?:[a-z]+-)?[0-9a-f]{{{LEAST}}}[0-9a-z._-]{{0,200}}")
"""Prefix of a rollout's id, which begins with the id of its cycle or job."""
MOST_LISTED = 5
"""Maximum number of names listed in a message."""


class AmbiguousPrefixError(LedgerError):
    exit_code = 2


def is_prefix(typed: str) -> bool:
    return PREFIX.fullmatch(typed) is not None


def is_cycle_prefix(typed: str) -> bool:
    return CYCLE_PREFIX.fullmatch(typed) is not None


def is_rollout_prefix(typed: str) -> bool:
    return ROLLOUT_PREFIX.fullmatch(typed) is not None


def too_short(typed: str) -> bool:
    """True if the text is hexadecimal but has too few digits for a prefix of a record's name."""
    return re.fullmatch(rf"[0-9a-fA-F]{{1,{LEAST - 1}}}", typed) is not None


def only_one(kind: str, prefix: str, names: Sequence[str]) -> str | None:
    """Returns the only name that begins with a prefix, None if there is none. Raises AmbiguousPrefixError, which lists
    them, for several."""
    if len(names) > 1:
        listed = ", ".join([*names[:MOST_LISTED], *(["and more"] if len(names) > MOST_LISTED else [])])
        raise AmbiguousPrefixError(f"more than one {kind} begins with {prefix}: {listed}", hint="give more digits")
    return names[0] if names else None
