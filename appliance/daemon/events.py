"""Lines of progress in the ledger, for people."""

from __future__ import annotations

from collections.abc import Callable

from appliance.ledger.ledger import Ledger
from appliance.records.events import Event


class EventLog:
    def __init__(self, ledger: Ledger, now: Callable[[], str]) -> None:
        self._ledger = ledger
        self._now = now

    def add(self, kind: str, text: str, **figures: float) -> None:
        self._ledger.put_event(Event(kind=kind, text=text, figures=figures, created=self._now()))
