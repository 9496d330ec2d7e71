"""Nights and schedule state in the SQLite ledger; workers access neither."""

from __future__ import annotations

from sqlalchemy import Table

from appliance.ledger.rows import Rows, payload_of, put_row
from appliance.ledger.tables import NIGHTS, SCHEDULE
from appliance.records.nights import Night, ScheduleState
from appliance.records.record import Record

ONLY = "schedule"
"""Key of the single row of the schedule table."""


class NightRows(Rows):
    def put_night(self, night: Night) -> None:
        """Inserts or updates the record of a night."""
        self._write(NIGHTS, night.key, night)

    def night(self, key: str) -> Night | None:
        return self._one(Night, NIGHTS, key)

    def nights(self, limit: int = 20) -> list[Night]:
        """Returns the recorded nights in order of arrival, newest first."""
        return self._newest(Night, NIGHTS, limit)

    def put_schedule(self, state: ScheduleState) -> None:
        self._write(SCHEDULE, ONLY, state)

    def _write(self, table: Table, key: str, record: Record) -> None:
        """Inserts or updates a record without the audit log, which covers only decisions about models."""
        with self._database.writing() as connection:
            put_row(connection, table, {"key": key, "payload": payload_of(record)})

    def schedule(self) -> ScheduleState | None:
        return self._one(ScheduleState, SCHEDULE, ONLY)
