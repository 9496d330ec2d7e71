"""Writes progress events for people into the ledger."""

from __future__ import annotations

from collections.abc import Callable

import structlog

from appliance.ledger.ledger import Ledger, LedgerError
from appliance.records.events import Event

log = structlog.get_logger("assay")


class EventLog:
    def __init__(self, ledger: Ledger, now: Callable[[], str]) -> None:
        self._ledger = ledger
        self._now = now

    def add(self, kind: str, text: str, **figures: float) -> None:
        self._ledger.put_event(Event(kind=kind, text=text, figures=figures, created=self._now()))

    def tell(self, kind: str, text: str) -> None:
        """Adds a progress event to the ledger, or only logs it if the ledger cannot be written. For callers that must
        continue."""
        try:
            self.add(kind, text)
        except LedgerError as error:
            log.warning(text, kind=kind, not_on_record=str(error))
