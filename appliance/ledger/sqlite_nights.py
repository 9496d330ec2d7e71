"""Keeps nights, and what the schedule has to know, in the ledger on SQLite. No worker asks for either."""

from __future__ import annotations

from sqlalchemy import Table

from appliance.ledger.rows import Rows, payload_of, put_row
from appliance.ledger.tables import NIGHTS, SCHEDULE
from appliance.records.nights import Night, ScheduleState
from appliance.records.record import Record

ONLY = "schedule"
"""The key of the one row of its table."""


class NightRows(Rows):
    def put_night(self, night: Night) -> None:
        """Inserts or updates."""
        self._write(NIGHTS, night.key, night)

    def night(self, key: str) -> Night | None:
        return self._one(Night, NIGHTS, key)

    def nights(self, limit: int = 20) -> list[Night]:
        """Lists them, newest first: in the order in which they came on record."""
        return self._newest(Night, NIGHTS, limit)

    def put_schedule(self, state: ScheduleState) -> None:
        self._write(SCHEDULE, ONLY, state)

    def _write(self, table: Table, key: str, record: Record) -> None:
        """Writes it past the audit log, which has what decides about models."""
        with self._database.writing() as connection:
            put_row(connection, table, {"key": key, "payload": payload_of(record)})

    def schedule(self) -> ScheduleState | None:
        return self._one(ScheduleState, SCHEDULE, ONLY)
